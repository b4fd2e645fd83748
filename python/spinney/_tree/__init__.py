"""One tree: the estimators, and what reads or changes a fitted tree."""
