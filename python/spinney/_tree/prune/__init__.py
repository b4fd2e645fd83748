"""How far to prune a grown tree.

    cross_validation  the nested trees of cost-complexity pruning, their cross-validated errors, the choice
    table             the outcome as a table, and in model files
    at_fit            pruning as a part of `fit`, reduced-error and pessimistic pruning among it

A tree of the sequence is known by its alpha: the penalty per leaf from which it is the best one.
"""
