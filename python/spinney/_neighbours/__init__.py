"""Neighbours and regular cells: the estimators."""
