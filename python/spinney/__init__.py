"""Trees and ensembles for tables."""
