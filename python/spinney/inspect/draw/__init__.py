"""Plots of trees and models.

    layout        positions of the nodes of a tree without overlap; widths of texts
    picture       a tree as shapes and texts, independent of the output format
    tree_drawing  a picture as SVG, without any library, or on matplotlib's axes
    plane         models in the plane of two columns; proximities and outliers of forests
    curves        curves and bars of fitted models

matplotlib is imported when one of its functions is called.
"""
