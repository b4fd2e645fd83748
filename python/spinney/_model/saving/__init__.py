"""Model files: fitted models to bytes and back, without pickle.

    estimator ◀──▶ SavedModel ◀──saved_model──▶ header, trees ◀──file.container──▶ bytes

Tables of fields (``spinney._model.file.codec``) declare the entries of a header; files are written and read by these.
`members` reads ensembles of several models, `predictor` predicts without scikit-learn. Everything read from a file is
checked: the bytes and the trees by the engine, the header by the tables.
"""
