"""How far to prune a grown tree.

    nested        the nested trees of cost-complexity pruning, and where they are cut apart
    cross_validation  the error of every nested tree, from one walk of each held-out row
    choice        which of them to keep
    table         the outcome as a table
    estimates     reduced-error and pessimistic pruning
    at_fit        all of these as a part of `fit`
    parameter     `prune` as a parameter and as a method
    methods       what all of this adds to an estimator
    kept          what model files keep of it
    kept          what model files keep of it

A tree of the sequence is known by its alpha: the penalty per leaf from which it is the best one.
"""
