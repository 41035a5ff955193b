"""Stochastic passes, whitening, low rank."""
