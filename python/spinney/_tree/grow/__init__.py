"""What estimators that grow trees share."""
