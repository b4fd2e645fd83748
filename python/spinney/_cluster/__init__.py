"""Fits on a Dask cluster: collections, actors on workers, blocks of rows, and the transport of requests."""
