"""Every loss: value, slope, curvature, conjugate, facts."""
