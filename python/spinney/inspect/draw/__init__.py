"""Plots of trees, models and results.

    axes          the import of matplotlib, colours, named lines, marks
    picture       a tree as shapes and texts, independent of the output format, and its layout
    tree_drawing  a picture as SVG, without any library, or on matplotlib's axes
    plane         models in the plane of two columns; proximities and outliers of forests
    teaching      impurities, losses and penalised risks, for lectures
    regions       decision regions of any models, and the rounds of AdaBoost
    errors        errors against the number of members or a parameter
    curves        curves and bars of fitted models, and of evaluations
    explanation   charts of explanations: dependence, importances, SHAP values, counterfactuals

matplotlib is imported when one of its functions is called.
"""
