"""Stochastic Newton descent with a low-rank inverse."""
