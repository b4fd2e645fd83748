"""Model files: fitted models to bytes and back, without pickle.

    estimator ◀──▶ SavedModel ◀──saved_model──▶ header, trees ◀──file.container──▶ bytes

Tables of fields (``spinney._model.file.codec``) declare what a header holds; files are written and read by them.
`members` reads ensembles of several models, `predictor` predicts without scikit-learn. Everything that comes out of a
file is checked: the bytes and the trees by the engine, the header by the tables.
"""
