"""Trees by rpart's rules: the same splits, numbers and tables, from the one engine.

control    rpart's own names of parameters
estimator  what y may be, which rows are used, and the `fit` of an estimator
methods    class, anova, poisson, exp: what a node predicts and risks
complexity when a subtree is no longer worth its splits
fit        growing, cross-validating
record     the fit in rpart's layout: frame, splits, table of complexities; and in model files
report     the record as rpart prints it
"""
