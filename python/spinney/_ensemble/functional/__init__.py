"""Functional boosting: any weak learner, for any differentiable loss."""
