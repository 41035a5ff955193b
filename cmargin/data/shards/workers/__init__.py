"""Rows in partitions on the workers of a cluster, whatever runs it; the libraries are listed in `data/places.py`.

A library has a ``cluster``, as `cmargin.data.shards.dask.cluster.Cluster` is one: it runs a function on every partition
(``everywhere``) and keeps the results there, says what they come to (``results``, ``have_done``), lets them go
(``forget``), groups partitions by where they are (``groups``), and knows its ``memory``.
"""
