"""What a fitted model has learned, found by querying it.

dependence      mean prediction as a column changes, and the curve of each row
permutation     what the model loses when a column is shuffled
interactions    which columns act together
counterfactual  what would have to change for another prediction
nearest         training rows that the model treats alike
shap            how much each column adds to each prediction
importances     importances as a table and a chart
"""
