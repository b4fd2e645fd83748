"""Dask: collections, workers and the partitions of rows on them, transport of requests, and waits."""
