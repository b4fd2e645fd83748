"""Fits whose rows are dealt out to the workers of a cluster, and predictions of lazy collections."""
