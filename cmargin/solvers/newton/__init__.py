"""Newton's method on sums over all rows."""
