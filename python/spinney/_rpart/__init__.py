"""Trees by rpart's rules: the same splits, numbers and tables, from the one engine.

response   what y may be, and which rows are used
methods    class, anova, poisson, exp: what a node predicts and risks
complexity when a subtree is no longer worth its splits
fit        growing, cross-validating
record     what is kept of a fit: frame, splits, table of complexities
preset     rpart's own words for parameters
"""
