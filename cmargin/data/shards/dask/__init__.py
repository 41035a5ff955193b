"""Rows that live with the workers of a dask.distributed cluster, in partitions."""
