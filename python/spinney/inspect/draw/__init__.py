"""Trees as pictures.

    layout     where the nodes of a tree stand, so that nothing overlaps
    picture    a tree as shapes and texts in points; knows nothing of files
    svg        a picture as SVG text, without any library
    tree_plot  a picture on matplotlib's axes; unpruned beside pruned
    plane      the partition of the plane by two columns
    curves     impurity curves and importances
    learning_curve  loss of a boosted model, round by round
    neighbours how rows lie to each other in a forest

matplotlib is imported when one of its functions is called, never before.
"""
