"""Ensembles of any estimator."""
