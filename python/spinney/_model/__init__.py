"""What predicts: a tree, a forest, a sum of trees, and their handles for single rows; no scikit-learn."""
