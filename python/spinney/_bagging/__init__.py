"""Ensembles of any estimator, fitted on samples of the rows."""
