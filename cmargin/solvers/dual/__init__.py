"""Sweeps and Newton steps of SmSVM's dual."""
