"""Honest comparison: the same folds for all models, paired differences, and how sure one can be of them."""
