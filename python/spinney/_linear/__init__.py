"""Linear models of tables: logistic and ridge regression."""
