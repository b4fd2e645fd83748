"""Models through a file and back, and what two models must share to be called the same."""

import io

import numpy as np
import spinney

ENGINE_ARRAYS = ("feature", "threshold", "impurity", "weight", "n_rows", "flags", "value")


def small_classifier():
    return spinney.DecisionTreeClassifier(max_depth=3).fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 3)


def bytes_of(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def through_bytes(model, loader=None):
    return (loader or spinney.load)(io.BytesIO(bytes_of(model)))


def assert_same_model(first, second, X):
    assert type(first) is type(second)
    assert sorted(vars(first)) == sorted(vars(second))
    assert first.schema_ == second.schema_
    for name in ENGINE_ARRAYS:
        a, b = getattr(first.tree_.engine, name), getattr(second.tree_.engine, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name
    np.testing.assert_array_equal(first.tree_.children_right, second.tree_.children_right)
    for node in np.flatnonzero(first.tree_.is_categorical):
        assert first.tree_.left_categories(node) == second.tree_.left_categories(node)
    for name in ("n_outputs_", "n_features_in_", "max_features_"):
        assert getattr(first, name) == getattr(second, name)
    assert_same_answers(first, second, X)


def assert_same_answers(first, second, X):
    a, b = first.predict(X), second.predict(X)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_array_equal(a, b)
    if hasattr(first, "classes_"):
        for c, d in zip(shares(first, X), shares(second, X), strict=True):
            assert c.shape == d.shape
            assert c.tobytes() == d.tobytes()


def shares(model, X):
    found = model.predict_proba(X)
    return found if isinstance(found, list) else [found]
