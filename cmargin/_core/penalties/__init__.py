"""Every penalty: value, slope along a line with its kinks, which columns it holds at zero, conjugate."""
