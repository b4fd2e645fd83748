"""Trees and models as pictures.

    layout        where the nodes of a tree stand, so that nothing overlaps; how wide a text is
    picture       a tree as shapes and texts in points; knows nothing of files
    tree_drawing  a picture as SVG text, without any library, or on matplotlib's axes
    plane         models in the plane of two columns; proximities and outliers of forests
    curves        curves and bars about a fitted model

matplotlib is imported when one of its functions is called, never before.
"""
