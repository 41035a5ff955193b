"""Rows that several processes hold: the ranks of a communicator, the workers of a cluster."""
