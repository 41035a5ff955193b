"""The compiled Newton driver: directions, searches, widths, bounds."""
