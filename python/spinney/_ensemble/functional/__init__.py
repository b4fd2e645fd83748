"""Functional boosting: any loss, and any weak learner or several of them."""
