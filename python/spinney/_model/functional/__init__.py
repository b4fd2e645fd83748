"""Sums of simple functions: what each weak learner adds, step by step, and the model that they make together."""
