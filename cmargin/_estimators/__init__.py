"""What the public estimators share, and the parts of `fit` that are modules of their own."""
