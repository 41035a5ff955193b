"""Margins of rows that are left out of a fit one by one: certified intervals, and solutions where these need it."""
