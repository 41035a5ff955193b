"""Measurements: the machine and its limits, reports, races."""
