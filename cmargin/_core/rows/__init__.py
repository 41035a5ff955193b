"""Rows of a matrix: views, tiles, and what is summed over them."""
