"""Learners by margins: support vector machines, linear ones for large tables, and the perceptron."""
