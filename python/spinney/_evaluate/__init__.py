"""How far to trust a learner: bias and variance, fragility, shrinkage."""
