"""What a fitted model has learned, found by querying it.

target_model           a model, and rows that it is queried about with some of their values replaced
dependence             mean prediction as a column changes, and the curve of each row
importances            importances as a table and a chart; what a score loses when a column is permuted
interactions           which columns act together
counterfactual         what would have to change for another prediction
counterfactual_search  the search for such changes
nearest                training rows that the model treats alike
shap                   how much each column adds to each prediction
coverage               how often intervals or sets of classes cover the truth
"""
