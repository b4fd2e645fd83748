"""Saved models of every kind load and predict as when they were saved."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import spinney
from spinney import _engine

FOLDER = Path(__file__).resolve().parents[2] / "saved_models"
IMPUTER = FOLDER / "format1_imputer.spinney"
FILES = sorted(path for path in FOLDER.glob("*.spinney") if path != IMPUTER)
KINDS = {
    *("classifier", "weighted_classifier", "regressor", "two_outputs", "two_class_outputs"),
    *("extra_classifier", "extra_regressor", "numbers", "surrogates", "rpart"),
    *("forest_classifier", "forest_shrunk", "extra_forest_regressor", "forest_rows"),
    *("boosting_classifier", "boosting_regressor", "functions_classifier", "functions_regressor"),
    *("linear_classifier", "linear_regressor", "stack_classifier", "stack_layers", "vote_classifier"),
    *("survival_tree", "survival_forest"),
    *("adaboost_classifier", "adaboost_gentle", "adaboost_real", "adaboost_regressor"),
}


def table_of(model, rows):
    if hasattr(model, "feature_names_in_"):
        return {name: [row[j] for row in rows] for j, name in enumerate(model.feature_names_in_)}
    return np.array(rows, dtype=float)


def test_every_format_and_kind_is_there():
    formats = {int(re.match(r"format(\d+)_", path.name)[1]) for path in FILES}
    assert formats == set(range(1, _engine.MODEL_FORMAT + 1))
    for version in formats:
        assert {path.stem.removeprefix(f"format{version}_") for path in FILES} >= KINDS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("loader", [spinney.load, spinney.load_predictor])
def test_a_saved_model_predicts_as_before(path, loader):
    model = loader(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    X = table_of(model, expected["rows"])
    if "boosting" in path.name and not hasattr(model, "classes_"):
        np.testing.assert_allclose(model.predict(X), expected["predict"], rtol=1e-13)  # NumPy's exp has the last word
    else:
        assert model.predict(X).tolist() == expected["predict"]
    if "predict_cumulative_incidence" in expected and loader is spinney.load:
        assert model.predict_cumulative_incidence(X).tolist() == expected["predict_cumulative_incidence"]
    if "predict_proba" in expected:
        shares = model.predict_proba(X)
        found = [s.tolist() for s in shares] if isinstance(shares, list) else shares.tolist()
        if "boosting" in path.name:
            wanted = expected["predict_proba"]
            for mine, one in zip(found, wanted, strict=True) if isinstance(shares, list) else [(found, wanted)]:
                np.testing.assert_allclose(mine, one, rtol=1e-13)
        else:
            assert found == expected["predict_proba"]


def test_the_saved_models_have_every_kind_of_split():
    models = {path: spinney.load(path) for path in FILES}
    trees = [model.tree_ for model in models.values() if hasattr(model, "tree_")]
    trees += [tree.tree_ for path, model in models.items() if "forest" in path.name for tree in model]
    assert any(tree.is_categorical.any() for tree in trees)
    assert any(tree.missing_go_to_left.any() for tree in trees)
    expected = {"extra": 1, "forest": 2, "rpart": 3, "boosting": 4, "gentle": 4, "functions": 4}
    expected |= {"stack": 4, "vote": 4, "machines_classifier": 4}
    for path, model in models.items():
        seed = next((seed for name, seed in expected.items() if name in path.name), None)
        assert model.get_params().get("random_state") == seed


def test_the_saved_models_have_every_kind_of_competing_split():
    splits = spinney.load(FOLDER / "format1_surrogates.spinney").tree_.splits
    assert {0, 1, 2} == set(splits["role"])
    surrogates = splits["flags"][splits["role"] == 2]
    assert {0, 1, 2} <= set(surrogates.tolist())  # numbers, categories, reversed


def test_a_saved_model_of_rpart_still_reports(capsys):
    model = spinney.load(FOLDER / "format1_rpart.spinney")
    model.printcp()
    table = capsys.readouterr().out
    assert table.startswith("Classification tree:")
    assert len(table.splitlines()) == 10 + len(model.rpart_.cp_table)
    model.summary()
    assert "Surrogate splits:" in capsys.readouterr().out
    assert model.pruned(cp=0.3).get_n_leaves() < model.get_n_leaves()


def test_a_saved_forest_with_training_rows_retains_them():
    path = FOLDER / "format1_forest_rows.spinney"
    model, expected = spinney.load(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    X = table_of(model, expected["rows"])
    assert model.predict_quantiles(X, (0.1, 0.5, 0.9)).tolist() == expected["predict_quantiles"]
    support = model.predict_support(X)
    assert support.effective_rows.tolist() == expected["effective_rows"]
    assert support.outside.tolist() == expected["outside"]
    assert support.outside[-1].any()  # the row of strange values
    assert not support.outside[:40].any()  # training rows
    errors = model.predict_standard_error(X, corrected=False)
    np.testing.assert_allclose(errors, expected["predict_standard_error"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X, 0.8, "jackknife+"), expected["predict_interval"], rtol=1e-12)


def test_a_saved_imputer_fills_as_it_did():
    imputer = spinney.load(IMPUTER)
    expected = json.loads(IMPUTER.with_suffix(".json").read_text(encoding="utf-8"))
    filled = imputer.transform(table_of(imputer, expected["rows"]))
    assert {name: np.asarray(column).tolist() for name, column in filled.items()} == expected["transform"]
    assert any(None in row for row in expected["rows"])
