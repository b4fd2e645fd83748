"""Model files: fitted models to bytes and back, without pickle.

    estimator ◀──estimator──▶ FittedPart ◀──part──▶ header, trees

`_file` turns header and trees into bytes and writes them to disk. Only `estimator` needs scikit-learn, and only when it
makes an estimator: `predictor` predicts without it. Everything that comes out of a file is checked: the bytes and the
trees by the engine, the header here.
"""
