"""Explanations of fitted models from their predictions.

target_model           predictions of a model for rows with some values replaced
dependence             mean prediction as a column changes, and the curve of each row
importances            importances as a table and a chart; permutation importance
interactions           interactions between columns
counterfactual         changes of a row that change its prediction
counterfactual_search  the search for such changes
nearest                most similar training rows
shap                   contributions of the columns to each prediction
coverage               empirical coverage of prediction intervals and sets
"""
