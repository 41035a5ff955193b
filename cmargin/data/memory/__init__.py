"""Rows in memory."""
