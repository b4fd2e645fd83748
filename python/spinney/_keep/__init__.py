"""Model files: fitted models to bytes and back, without pickle.

    estimator ◀──estimator──▶ FittedPart ◀──fitted──▶ header, trees ◀──model_file──▶ bytes ◀──disk──▶ file

`estimator` alone needs scikit-learn, and only when it makes one: `predictor` predicts without it. Everything that
comes out of a file is checked: the bytes and the trees by the engine, the header here.
"""
