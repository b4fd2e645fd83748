"""Boosting whose rows are partitioned across the workers of a cluster."""
