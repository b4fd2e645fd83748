"""Nearest neighbours and histograms."""
