"""Trees by rpart's rules: the same splits, numbers and tables, from the one engine.

response   what y may be, and which rows are used
methods    class, anova, poisson, exp: what a node predicts and risks
complexity when a subtree is no longer worth its splits
fit        growing, cross-validating
estimator  all of these as the `fit` of an estimator
record     what is kept of a fit: frame, splits, table of complexities
report     the record as rpart prints it
kept       the record in model files
preset     rpart's own names of parameters
"""
