"""Bagging in model files, n_estimators="auto", and progress reports."""

import functools
import io
import json
import pickle
import sys

import numpy as np
import pytest
import spinney
from oracle.saved import assert_same_answers, bytes_of, through_bytes
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from spinney._estimator.parallel import Progress
from spinney._forest.growing import has_settled
from spinney._model.file.container import from_bytes, to_bytes

PENGUINS, SPECIES = spinney.datasets.load_penguins(as_frame="pandas")
DIABETES, PROGRESS = load_diabetes(return_X_y=True)


def bagged(member=None, **parameters):
    return spinney.BaggingClassifier(member, **({"n_estimators": 4, "random_state": 0} | parameters))


# ---- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        bagged(),
        bagged(spinney.DecisionTreeClassifier(max_depth=2), max_features=3, oob_score=True, n_estimators=20),
        bagged(spinney.RandomForestClassifier(n_estimators=3, oblique=9)),
        bagged(spinney.ExtraTreeClassifier(), voting="hard", bootstrap_features=True),
        bagged(max_samples=3),  # members that lack classes
    ],
    ids=["trees", "some columns", "forests", "votes", "few rows"],
)
def test_an_ensemble_of_trees_or_forests_comes_back_as_it_was(model):
    model = clone(model).fit(PENGUINS, SPECIES)
    loaded = through_bytes(model)
    assert_same_answers(model, loaded, PENGUINS)
    assert_same_answers(model, pickle.loads(pickle.dumps(loaded)), PENGUINS)
    assert bytes_of(loaded) == bytes_of(model)
    assert str(loaded) == str(model)
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert getattr(loaded, "oob_score_", None) == getattr(model, "oob_score_", None)
    assert hasattr(loaded, "oob_curve_") == hasattr(model, "oob_curve_") == bool(model.oob_score)
    if model.oob_score:
        np.testing.assert_array_equal(loaded.oob_errors(), model.oob_curve_)


def test_regressors_of_several_outputs_come_back():
    y = np.column_stack([PROGRESS, -PROGRESS])
    model = spinney.BaggingRegressor(n_estimators=3, random_state=0).fit(DIABETES, y)
    np.testing.assert_array_equal(through_bytes(model).predict(DIABETES), model.predict(DIABETES))


def test_members_of_other_libraries_can_only_be_pickled():
    X = DIABETES
    model = bagged(KNeighborsClassifier()).fit(X, PROGRESS > 100)
    with pytest.raises(TypeError, match="of the type KNeighborsClassifier"):
        model.save(io.BytesIO())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_samples_of_members_are_not_saved():
    loaded = through_bytes(bagged(oob_score=True, n_estimators=20, warm_start=True).fit(PENGUINS, SPECIES))
    with pytest.raises(AttributeError, match="do not save the samples of members"):
        _ = loaded.estimators_samples_
    with pytest.raises(AttributeError, match="do not save the samples of members"):
        loaded.set_params(n_estimators=30).fit(PENGUINS, SPECIES)
    with pytest.raises(spinney.ModelFileError, match=r"several models. Read it with spinney.load"):
        spinney.load_predictor(io.BytesIO(bytes_of(loaded)))
    loaded.set_params(warm_start=False, n_estimators=20).fit(PENGUINS, SPECIES)
    assert len(loaded.estimators_samples_) == 20


@functools.cache
def whole_file():
    return bytes_of(bagged(max_features=3).fit(PENGUINS, SPECIES))


def broken(change):
    data = whole_file()
    header, _ = from_bytes(data)
    change(header)
    members = spinney.load(io.BytesIO(data)).estimators_
    return to_bytes(header, [member.tree_.engine for member in members])


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["models"].pop(),
        lambda h: h["columns"].pop(),
        lambda h: h.pop("columns"),
        lambda h: h["columns"].__setitem__(0, [0, 1, 99]),
        lambda h: h["columns"].__setitem__(0, [0, 1]),
        lambda h: h["columns"].__setitem__(0, "none"),
        lambda h: h["models"][0].update(n_trees=2),
        lambda h: h["models"][0].update(n_trees=-1),
        lambda h: h["models"].__setitem__(0, 7),
        lambda h: h["models"][0]["model"].update(estimator="BaggingClassifier"),
        lambda h: h.update(names=["a"]),
        lambda h: h.update(n_features=0),
        lambda h: h.update(classes=None),
        lambda h: h["classes"].update(labels=["x", "y", "z"]),
        lambda h: h.update(estimator="BaggingRegressor"),
        lambda h: h.update(estimator="DecisionTreeClassifier"),
        lambda h: h["parameters"].update(
            estimator={"dict": [["estimator", "load"], ["parameters", {"dict": []}], ["templates", {"dict": []}]]}
        ),
        lambda h: h.update(models=[], columns=[]),
        lambda h: h.update(oob_score_="good"),
        lambda h: h.update(oob_curve_=[0.5]),
    ],
)
def test_a_damaged_file_is_refused(change):
    assert spinney.load(io.BytesIO(broken(lambda h: None))).predict(PENGUINS[:1])[0] == "Adelie"
    with pytest.raises(spinney.ModelFileError, match=r"damaged|does not know|invalid tree"):
        spinney.load(io.BytesIO(broken(change)))


def test_the_header_of_a_file_is_plain_json():
    header, _ = from_bytes(bytes_of(bagged().fit(PENGUINS, SPECIES)))
    assert json.loads(json.dumps(header)) == header
    assert header["kind"] == "bagging"


# ---- as many as it takes ----------------------------------------------------------------------------------


def test_members_are_added_until_the_error_has_settled():
    model = spinney.BaggingRegressor(n_estimators="auto", random_state=0, n_jobs=1).fit(DIABETES, PROGRESS)
    n = len(model.estimators_)
    assert 100 <= n < 1000
    fixed = spinney.BaggingRegressor(n_estimators=n, oob_score=True, random_state=0).fit(DIABETES, PROGRESS)
    np.testing.assert_array_equal(model.predict(DIABETES), fixed.predict(DIABETES))
    np.testing.assert_array_equal(model.oob_curve_, fixed.oob_curve_)
    assert model.oob_score_ == fixed.oob_score_
    assert has_settled(model.oob_curve_.tolist())
    assert not has_settled(model.oob_curve_[:99].tolist())


def test_auto_needs_rows_out_of_bag():
    with pytest.raises(ValueError, match="n_estimators to a number"):
        bagged(n_estimators="auto", bootstrap=False).fit(PENGUINS, SPECIES)


def test_the_error_curve_is_named_as_in_forests():
    model = bagged(n_estimators=30, oob_score="neg_log_loss").fit(PENGUINS, SPECIES)
    forest = spinney.RandomForestClassifier(n_estimators=30, oob_score=True, random_state=0).fit(PENGUINS, SPECIES)
    for fitted in (model, forest):
        assert fitted.oob_curve_.shape == (30,)
        np.testing.assert_array_equal(fitted.oob_errors(), fitted.oob_curve_)
        np.testing.assert_array_equal(fitted.oob_errors(PENGUINS, SPECIES), fitted.oob_curve_)
        by_metric = fitted.oob_errors(PENGUINS, SPECIES, accuracy_score)
        np.testing.assert_allclose(by_metric, 1 - fitted.oob_curve_)
        assert fitted.oob_errors(PENGUINS, SPECIES, "neg_log_loss")[-1] < 0
        with pytest.raises(ValueError, match="Pass the X and y that were passed to fit"):
            fitted.oob_errors(metric="neg_log_loss")
    assert model.oob_errors(PENGUINS, SPECIES, "neg_log_loss")[-1] == pytest.approx(model.oob_score_)


# ---- progress ---------------------------------------------------------------------------------------------

ENSEMBLES = {
    "trees": lambda **more: spinney.RandomForestClassifier(n_estimators=40, random_state=0, **more),
    "members": lambda **more: bagged(n_estimators=40, **more),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("noun", ENSEMBLES)
def test_a_terminal_shows_one_line_that_changes(noun, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    ENSEMBLES[noun](verbose=1, oob_score=True).fit(PENGUINS, SPECIES)
    shown = sys.stderr.getvalue()
    assert shown.count("\n") == 1
    assert shown.endswith("\n")
    last = shown.split("\r")[-1]
    assert f"40 of 40 {noun}, out-of-bag error 0.0" in last
    assert "0.0 s left" in last


@pytest.mark.parametrize("noun", ENSEMBLES)
def test_progress_has_few_lines_and_is_off_by_default(noun, capsys):
    ENSEMBLES[noun](verbose=1).fit(PENGUINS, SPECIES)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 10
    assert all("\r" not in line and f"of 40 {noun}" in line and line.endswith("s left") for line in lines)
    ENSEMBLES[noun](oob_score=True).fit(PENGUINS, SPECIES)
    assert capsys.readouterr() == ("", "")


def test_a_line_that_was_not_due_is_shown_at_the_end(capsys):
    with Progress("trees", 1000, True, 0, 1) as progress:
        progress.report(110, 0.25)
        progress.report(120, 0.125)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["110 of at most 1000 trees", "120 of at most 1000 trees"]
    assert "out-of-bag error 0.125" in lines[1]


def test_an_interrupted_line_ends(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress("trees", 10, False, 0, 1)
    progress.report(3)
    progress.__exit__(KeyboardInterrupt, None, None)
    assert sys.stderr.getvalue().endswith("left\n")


@pytest.mark.parametrize("stops", [False, True])
def test_each_member_of_bagged_boosting_has_its_own_trees(stops):
    members = spinney.GradientBoostingRegressor(n_estimators=20, early_stopping=stops, n_iter_no_change=2)
    model = spinney.BaggingRegressor(members, n_estimators=3, random_state=0).fit(DIABETES, PROGRESS)
    loaded = through_bytes(model)
    assert [m.n_iter_ for m in loaded.estimators_] == [m.n_iter_ for m in model.estimators_]
    np.testing.assert_array_equal(loaded.predict(DIABETES), model.predict(DIABETES))


def test_an_ensemble_of_ensembles_is_saved():
    inner = spinney.BaggingClassifier(n_estimators=2, max_features=4, random_state=0)
    model = spinney.BaggingClassifier(inner, n_estimators=2, max_features=5, random_state=0).fit(PENGUINS, SPECIES)
    loaded = through_bytes(model)
    np.testing.assert_array_equal(loaded.predict_proba(PENGUINS), model.predict_proba(PENGUINS))
    assert loaded.fingerprint() == model.fingerprint()
    assert str(loaded) == str(model)
