"""Trees by rpart's rules: the same splits, numbers and tables as R's rpart.

control    rpart's parameter names
estimator  reading y and the rows, and the `fit` of an estimator
methods    class, anova, poisson, exp: prediction and risk of a node
fit        growth, complexities, cross-validation
record     the fit in rpart's layout: frame, splits, table of complexities; and in model files
report     the texts that rpart prints
"""
