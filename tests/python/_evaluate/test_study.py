"""Studies: preparation, folds, stack, calibration, time limit, result."""

from __future__ import annotations

import io
import json
import signal
import time as clock
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
import spinney
import spinney._data.file_readers as read
import spinney._evaluate.runner as budget
import spinney._evaluate.runner as runner
import spinney._evaluate.study.final_fits as final_fits
import spinney._evaluate.study.study as entry
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold
from spinney import _engine
from spinney._data.file_readers import ReadTable
from spinney._data.select import pick_table
from spinney._evaluate.folds import draw_folds, split_test
from spinney._evaluate.report.tree import tree_section
from spinney._evaluate.report.view import View
from spinney._evaluate.row_scores import log_losses
from spinney._evaluate.scoring import Scorers
from spinney._evaluate.study.columns import Columns, screened
from spinney._evaluate.study.combine import TEMPERATURES, HeldOut, best_temperature, calibrate, stacked
from spinney._evaluate.study.plan import EFFORTS, Size, lightened, make_plan, rows_to_study, work_of
from spinney._evaluate.study.prepare import StudyOptions, prepare
from spinney._model.predictions import tempered

QUICK = {"models": ["tree", "linear"], "repeats": 1, "cv": 3}


def made(task: str, n: int = 120) -> pl.DataFrame:
    random = np.random.default_rng(0)
    x, z = random.standard_normal(n), random.integers(0, 3, n)
    score = x + z + 0.5 * random.standard_normal(n)
    cut = {"binary": [1.0], "multiclass": [0.5, 1.5]}.get(task)
    y = score if cut is None else np.array(["low", "middle", "high"])[np.digitize(score, cut)]
    return pl.DataFrame({"x": x, "z": np.array(["a", "b", "c"])[z], "noise": random.standard_normal(n), "y": y})


def with_header(model, **entries):
    """Return the file of a model, with other entries in its header."""
    header, trees = model._file_parts()
    return io.BytesIO(_engine.write_model_file(json.dumps(header | entries).encode(), trees))


@pytest.fixture(scope="module")
def studies():
    return {task: spinney.study(made(task), "y", **QUICK) for task in ("binary", "multiclass", "regression")}


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_a_study_has_what_a_report_needs(studies, task):
    found = studies[task]
    n_train, n_test = len(found.y_train), len(found.y_test)
    assert found.task == task
    assert (n_train, n_test) == (96, 24)
    assert found.X_train.height == n_train
    assert {entry.name for entry in found.leaderboard} == {"tree", "linear", "stack", "baseline"}
    assert found.best != "baseline"
    assert set(found.models) == set(found.out_of_fold) == set(found.test_predictions)
    shape = {"binary": (2,), "multiclass": (3,), "regression": ()}[task]
    for name in found.models:
        assert found.out_of_fold[name].shape == (n_train, *shape)
        assert found.test_predictions[name].shape == (n_test, *shape)
    assert (found.classes is None) == (task == "regression")
    assert len(found.folds) == 3
    assert sorted(np.concatenate([held for _, held in found.folds]).tolist()) == list(range(n_train))
    assert isinstance(found.tree, spinney.DecisionTreeRegressor if not shape else spinney.DecisionTreeClassifier)
    means = [entry.mean for entry in found.leaderboard]
    assert means == sorted(means, reverse=True)
    json.dumps(found.to_dict(), allow_nan=False)
    assert "baseline" in str(found)
    assert "baseline" in found._repr_html_()
    assert found.to_frame("polars").height == 4


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_scores_are_those_of_the_predictions(studies, task):
    found = studies[task]
    entry = found["tree"]
    grown, held = found.folds[1]
    again = clone(found.models["tree"]).fit(found.X_train[grown], found.y_train[grown])
    for metric in found.metrics:
        expected = get_scorer(metric)(again, found.X_train[held], found.y_train[held])
        assert entry.scores[metric][1] == pytest.approx(expected)
        tested = get_scorer(metric)(found.models["tree"], found.X_test, found.y_test)
        assert entry.test[metric].value == pytest.approx(tested)
        assert not entry.test[metric].low > tested


def test_studies_are_reproducible(studies):
    again = spinney.study(made("binary"), "y", **QUICK)
    first = studies["binary"]
    assert again.model.fingerprint() == first.model.fingerprint()
    for name in first.models:
        assert again.out_of_fold[name].tobytes() == first.out_of_fold[name].tobytes()
        assert again.test_predictions[name].tobytes() == first.test_predictions[name].tobytes()
    assert again.notes == first.notes


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_the_stack_is_saved_in_a_file(studies, task):
    found = studies[task]
    stack, X = found.models["stack"], found.X_test
    file = io.BytesIO()
    stack.save(file)
    loaded, predictor = spinney.load(io.BytesIO(file.getvalue())), spinney.load_predictor(io.BytesIO(file.getvalue()))
    method = "predict" if task == "regression" else "predict_proba"
    expected = found.test_predictions["stack"]
    for model in (stack, loaded, predictor):
        assert getattr(model, method)(X).tobytes() == expected.tobytes()
    assert loaded.fingerprint() == stack.fingerprint()


def test_a_temperature_is_saved_in_a_file():
    from spinney._ensemble.weighted_stack import weighted_stack

    table = made("multiclass")
    X, y = table.drop("y"), table["y"].to_numpy()
    tree = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    model = weighted_stack({"tree": tree}, [1.0], X, tree.classes_, scores={"tree": 0.5}, calibration=2.0)
    proba = np.maximum(tree.predict_proba(X), 2.0**-52) ** 0.5
    np.testing.assert_allclose(model.predict_proba(X), proba / proba.sum(axis=1, keepdims=True), rtol=1e-12)
    file = io.BytesIO()
    model.save(file)
    for again in (spinney.load(io.BytesIO(file.getvalue())), spinney.load_predictor(io.BytesIO(file.getvalue()))):
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert (again.predict(X) == tree.predict(X)).all()
    plain = weighted_stack({"tree": tree}, [1.0], X, tree.classes_, scores={"tree": 0.5})
    assert plain.fingerprint() != model.fingerprint()


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_members_of_a_stack_have_temperatures(task):
    from spinney._ensemble.weighted_stack import weighted_stack

    table = made(task)
    X, y = table.drop("y"), table["y"].to_numpy()
    members = {name: spinney.DecisionTreeClassifier(max_depth=k).fit(X, y) for name, k in (("one", 1), ("two", 3))}
    inputs = {"X": X, "classes": np.unique(y), "scores": dict.fromkeys(members, 0.5)}
    model = weighted_stack(members, [0.25, 0.75], temperatures=[2.0, 0.5], **inputs)
    one, two = (np.maximum(member.predict_proba(X), 2.0**-52) for member in members.values())
    one, two = (proba / proba.sum(axis=1, keepdims=True) for proba in (one**0.5, two**2))
    np.testing.assert_allclose(model.predict_proba(X), 0.25 * one + 0.75 * two, rtol=1e-12)
    file = io.BytesIO()
    model.save(file)
    for again in (spinney.load(io.BytesIO(file.getvalue())), spinney.load_predictor(io.BytesIO(file.getvalue()))):
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert weighted_stack(members, [0.25, 0.75], **inputs).fingerprint() != model.fingerprint()
    for values in ([2.0], [2.0, 0.0], [2.0, "x"], "x", None):
        with pytest.raises(spinney.ModelFileError, match="temperature"):
            spinney.load(with_header(model, temperatures=values))


def test_a_stack_uses_underconfident_members():
    """They are more accurate than others once a temperature has calibrated them."""
    from spinney._estimator.held_out import Fold

    random, n = np.random.default_rng(0), 600
    truth = random.standard_normal(n)
    codes = (random.random(n) < 1 / (1 + np.exp(-3 * truth))).astype(np.intp)
    folds = [Fold(np.flatnonzero(np.arange(n) % 3 != k), np.flatnonzero(np.arange(n) % 3 == k)) for k in range(3)]
    held_out = HeldOut(folds, codes, np.array([0, 1]), False)

    def member(score):
        p = 1 / (1 + np.exp(-score))
        return [np.column_stack([1 - p, p])[fold.held_out] for fold in folds]

    underconfident, noisy = member(0.5 * truth), member(2 * truth + random.standard_normal(n))
    found = np.vstack(stacked([underconfident, noisy], held_out))
    best = np.vstack(member(3 * truth))
    target = held_out.targets([0, 1, 2])
    assert log_losses(found, target).mean() < 1.05 * log_losses(best, target).mean()


@pytest.mark.parametrize("temperature", [0.1, 0.4, 1.0, 3.0, 20.0])
def test_the_best_temperature_is_that_of_the_whole_list(temperature):
    random = np.random.default_rng(1)
    proba = random.dirichlet([1.0, 1.0, 1.0], 300)
    codes = np.array([random.choice(3, p=p) for p in tempered(proba, temperature)])
    losses = [log_losses(tempered(proba, one), codes).mean() for one in TEMPERATURES]
    assert best_temperature(proba, codes) == TEMPERATURES[int(np.argmin(losses))]


def test_calibration_is_evaluated_on_other_folds():
    from spinney._estimator.held_out import Fold

    random = np.random.default_rng(0)
    true = random.uniform(0.05, 0.95, 800)
    codes = (random.random(800) < true).astype(np.intp)
    folds = [Fold(np.flatnonzero(np.arange(800) % 5 != k), np.flatnonzero(np.arange(800) % 5 == k)) for k in range(5)]
    odds = (true / (1 - true)) ** 2.0  # overconfident
    overconfident = odds / (1 + odds)
    held_out = HeldOut(folds, codes, np.array([0, 1]), False)
    for p, expected in ((true, None), (overconfident, 2.0)):
        predictions = [np.column_stack([1 - p, p])[fold.held_out] for fold in folds]
        found = calibrate(predictions, held_out)
        assert found.by is None if expected is None else found.by == pytest.approx(expected, rel=0.3)


def test_isotonic_regression_is_used_where_a_temperature_does_not_suffice():
    from spinney._estimator.held_out import Fold
    from spinney._model.predictions import Curve

    random, n = np.random.default_rng(0), 4000
    p = random.uniform(0.02, 0.5, n)  # half of the predicted probability
    codes = (random.random(n) < p).astype(np.intp)
    folds = [Fold(np.flatnonzero(np.arange(n) % 5 != k), np.flatnonzero(np.arange(n) % 5 == k)) for k in range(5)]
    predictions = [np.column_stack([1 - 2 * p, 2 * p])[fold.held_out] for fold in folds]
    found = calibrate(predictions, HeldOut(folds, codes, np.array([0, 1]), False))
    assert isinstance(found.by, Curve)
    assert "isotonic regression" in found.why
    grid = np.linspace(0, 1, 101)
    true = found.by(np.column_stack([1 - grid, grid]))
    assert (np.diff(true[:, 1]) >= 0).all()
    assert (true.sum(axis=1) == 1).all()
    assert true[0, 1] > 0
    assert np.abs(true[:, 1] - grid / 2).max() < 0.1
    few = [one[:100] for one in predictions]
    short = [Fold(fold.train, fold.held_out[:100]) for fold in folds]
    assert not isinstance(calibrate(few, HeldOut(short, codes, np.array([0, 1]), False)).by, Curve)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40))
def test_curves_are_those_of_isotonic_regression(rows):
    from sklearn.isotonic import IsotonicRegression
    from spinney._model.predictions import isotonic_curve

    predicted, positive = np.array([row[0] / 8 for row in rows]), np.array([row[1] for row in rows])
    curve = isotonic_curve(predicted, positive)
    x, y = np.r_[predicted.min(), predicted, predicted.max()], np.r_[1, positive, 0]
    steps = IsotonicRegression().fit(x, y)
    assert (np.diff(curve.predicted) > 0).all()
    assert (np.diff(curve.observed) > 0).all()
    np.testing.assert_allclose(steps.predict(curve.predicted), curve.observed, rtol=1e-12)
    grid = np.linspace(0, 1, 33)
    expected = np.interp(grid, curve.predicted, curve.observed)
    np.testing.assert_allclose(curve(np.column_stack([1 - grid, grid]))[:, 1], expected, rtol=1e-12)


def test_a_curve_is_saved_in_a_file_and_a_damaged_one_is_refused():
    from spinney._ensemble.weighted_stack import weighted_stack
    from spinney._model.predictions import Curve

    table = made("binary")
    X, y = table.drop("y"), table["y"].to_numpy()
    tree = spinney.DecisionTreeClassifier(max_depth=3).fit(X, y)
    curve = Curve(np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.2, 0.7]))
    model = weighted_stack({"tree": tree}, [1.0], X, tree.classes_, scores={"tree": 0.5}, calibration=curve)
    expected = np.interp(tree.predict_proba(X)[:, 1], curve.predicted, curve.observed)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=1e-12)
    file = io.BytesIO()
    model.save(file)
    for again in (spinney.load(io.BytesIO(file.getvalue())), spinney.load_predictor(io.BytesIO(file.getvalue()))):
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert (again.predict(X) == model.predict(X)).all()
    assert spinney.load(io.BytesIO(file.getvalue())).fingerprint() == model.fingerprint()
    plain = weighted_stack({"tree": tree}, [1.0], X, tree.classes_, scores={"tree": 0.5})
    assert plain.fingerprint() != model.fingerprint()
    good = {"predicted": [0.1, 0.5], "observed": [0.2, 0.3]}
    again = spinney.load(with_header(model, curve=good))
    expected = np.interp(tree.predict_proba(X)[:, 1], good["predicted"], good["observed"])
    np.testing.assert_allclose(again.predict_proba(X)[:, 1], expected, rtol=1e-12)
    with pytest.raises(spinney.ModelFileError, match="damaged"):
        spinney.load(with_header(model, temperature=2.0))
    for predicted, observed in (
        ([], []),
        ([0.5, 0.1], [0.2, 0.3]),
        ([0.1, 0.5], [0.3, 0.2]),
        ([0.1, 0.5], [0.3, 1.5]),
        ([0.1, 0.5], [0.3]),
        ([0.1, "x"], [0.3, 0.4]),
        (None, None),
    ):
        with pytest.raises(spinney.ModelFileError, match="damaged"):
            spinney.load(with_header(model, curve={"predicted": predicted, "observed": observed}))


@pytest.mark.parametrize("task", ["multiclass", "regression"])
@pytest.mark.parametrize("entry", [{"curve": {"predicted": [0.1], "observed": [0.2]}}, {"temperature": 2.0}], ids=str)
def test_only_averaged_probabilities_are_calibrated(task, entry):
    from spinney._ensemble.weighted_stack import weighted_stack

    table = made(task)
    X, y = table.drop("y"), table["y"].to_numpy()
    family = spinney.DecisionTreeRegressor if task == "regression" else spinney.DecisionTreeClassifier
    tree = family(max_depth=2).fit(X, y)
    model = weighted_stack({"tree": tree}, [1.0], X, getattr(tree, "classes_", None), scores={"tree": 0.5})
    if task == "multiclass" and "temperature" in entry:
        spinney.load(with_header(model, **entry))
    else:
        with pytest.raises(spinney.ModelFileError, match="damaged"):
            spinney.load(with_header(model, **entry))


def test_weights_of_a_fold_come_from_the_others():
    from spinney._estimator.held_out import Fold

    folds = [Fold(np.arange(10, 20), np.arange(10)), Fold(np.arange(10), np.arange(10, 20))]
    y = np.arange(20.0)
    right, wrong = y[:, np.newaxis], np.zeros((20, 1))
    predictions = [[right[:10], wrong[10:]], [wrong[:10], right[10:]]]  # each is right on one fold
    first, second = stacked(predictions, HeldOut(folds, y, None, False))
    assert (first == 0).all()  # the second member was right on the other fold
    assert (second == 0).all()
    first, second = stacked(predictions, HeldOut(folds, y, None, True))
    assert (first[:, 0] == y[:10] / 2).all()  # nothing comes before: equal weights
    assert (second == 0).all()


# ---- the columns -----------------------------------------------------------------------------------------------------


def with_columns(n: int = 120, **columns) -> pl.DataFrame:
    return made("binary", n).with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def test_identifiers_constants_and_leaks_are_excluded_and_reported():
    n = 120
    table = with_columns(
        number=range(1000, 1000 + n), name=[f"person {k}" for k in range(n)], same=[1] * n, empty=[None] * n
    )
    table = table.with_columns(given_away=pl.when(pl.col("y") == "low").then(3.0).otherwise(7.0))
    found = {one.name: one for one in prepare(table, "y", StudyOptions(), 0).columns}
    assert [name for name, one in found.items() if one.is_used] == ["x", "z", "noise"]
    assert found["number"].is_identifier
    assert found["name"].is_identifier
    assert found["same"].is_constant
    assert found["empty"].is_constant
    assert found["given_away"].is_leak
    forced = prepare(table, "y", StudyOptions(keep=("name", "given_away"), drop=("x",)), 0)
    assert [one.name for one in forced.columns if one.is_used] == ["z", "noise", "name", "given_away"]
    assert forced.X.columns == ["z", "noise", "name", "given_away"]
    assert any("'given_away' is used as requested" in note for note in forced.notes)
    assert any("'number' is excluded" in note and "keep=['number']" in note for note in forced.notes)


def test_leaks_are_found_among_many_columns_and_for_values():
    random = np.random.default_rng(0)
    columns = {f"c{j}": random.standard_normal(100) for j in range(300)}
    y = random.standard_normal(100)
    columns |= {"twice": 2 * y, "rounded": y.round(2)}
    found = prepare(columns, y, StudyOptions(), 0)
    assert {one.name for one in found.columns if one.is_leak} == {"twice", "rounded"}


def test_ordinary_columns_are_neither_leaks_nor_identifiers():
    X, y = spinney.datasets.load_penguins()
    assert all(one.is_used for one in prepare(X, y, StudyOptions(), 0).columns)
    random = np.random.default_rng(0)
    table = {
        "age": random.integers(18, 90, 200),
        "income": random.uniform(0, 1e5, 200),
        "n": random.permutation(900)[:200],
    }
    assert all(one.is_used for one in prepare(table, random.standard_normal(200), StudyOptions(), 0).columns)


def test_date_parts_are_derived():
    start = date(2024, 1, 1)
    table = with_columns(day=[start + timedelta(days=3 * k) for k in range(120)])
    found = prepare(table, "y", StudyOptions(), 0)
    assert {"day", "day.month", "day.weekday"} <= set(found.X.columns)
    assert any("Year, month, weekday" in note for note in found.notes)


def test_duplicate_rows_stay_together():
    table = pl.concat([made("binary"), made("binary")[:50]])
    found = prepare(table, "y", StudyOptions(), 0)
    assert any("50 duplicate rows" in note for note in found.notes)
    random = np.random.RandomState(0)
    splits = [split_test(found, random), *draw_folds(found, 5, 1, random)[0]]
    for fold in splits:
        assert not set(found.groups[fold.train]) & set(found.groups[fold.held_out])
        assert len(fold.train) + len(fold.held_out) == 170
    few = made("binary").select("z", "y")
    found = prepare(few, "y", StudyOptions(), 0)
    assert found.groups is None
    assert any("may be in different folds" in note for note in found.notes)


def test_groups_stay_together_and_held_out_rows_are_later():
    table = with_columns(who=np.repeat(np.arange(24), 5), when=np.random.default_rng(1).permutation(120))
    random = np.random.RandomState(0)
    found = prepare(table, "y", StudyOptions(groups="who"), 0)
    assert "who" not in found.X.columns
    for fold in [split_test(found, random), *draw_folds(found, 5, 1, random)[0]]:
        assert not set(found.groups[fold.train]) & set(found.groups[fold.held_out])
    found = prepare(table, "y", StudyOptions(time="when"), 0)
    assert "when" not in found.X.columns
    later = split_test(found, random)
    assert len(later.held_out) == 24
    for fold in [later, *draw_folds(found, 5, 3, random)[0]]:
        assert found.time[fold.train].max() < found.time[fold.held_out].min()


def test_rows_without_a_target_are_excluded():
    table = made("regression").with_columns(y=pl.when(pl.col("x") > 1.5).then(None).otherwise(pl.col("y")))
    found = prepare(table, "y", StudyOptions(), 0)
    assert found.n_rows == table["y"].is_not_null().sum()
    assert any("without a value of 'y'" in note for note in found.notes)


def test_tables_of_every_kind_stay_what_they_are():
    import pandas as pd
    import pyarrow as pa

    table = made("binary")
    X, y = table.drop("y"), table["y"].to_numpy()
    for kind, rows in (
        (pl.DataFrame, X),
        (pd.DataFrame, X.to_pandas()),
        (pa.Table, X.to_arrow()),
        (dict, {name: X[name].to_numpy() for name in X.columns}),
    ):
        found = prepare(rows, y, StudyOptions(), 0)
        assert isinstance(found.X, kind)
        assert found.target == "target"
        assert [one.name for one in found.columns] == ["x", "z", "noise"]
        assert found.codes.tolist() == prepare(X, y, StudyOptions(), 0).codes.tolist()
    unnamed = prepare(X.select("x", "noise").to_numpy(), y, StudyOptions(), 0)
    assert [one.name for one in unnamed.columns] == ["x0", "x1"]
    assert len(prepare(pd.DataFrame(X.select("x", "noise").to_numpy()), y, StudyOptions(), 0).columns) == 2


def test_the_task_follows_from_the_target():
    table = made("binary")
    for values, task in (
        ([0, 1] * 60, "binary"),
        ([0.0, 1.0] * 60, "binary"),
        ([True, False] * 60, "binary"),
        ([1, 2, 3] * 40, "multiclass"),
        (list(range(120)), "regression"),
        ([0.5, 1.5] * 60, "regression"),
        (["a", "b"] * 60, "binary"),
    ):
        assert prepare(table.with_columns(y=pl.Series(values)), "y", StudyOptions(), 0).task == task
    numbers = table.with_columns(y=pl.Series([0, 1] * 60))
    assert prepare(numbers, "y", StudyOptions(task="regression"), 0).task == "regression"


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t.select("y"), {}, "one column only"),
        (lambda t: t[:0], {}, "no rows"),
        (lambda t: t.rename({"y": "Y"}), {}, "Did you mean 'Y'?"),
        (lambda t: t.with_columns(y=pl.lit("a")), {}, "is a in all 120 rows"),
        (lambda t: t.with_columns(y=pl.lit(None, pl.Float64)), {}, "has no values"),
        (lambda t: t[:10], {}, "10 rows with a target"),
        (lambda t: t.with_columns(y=pl.Series([f"n{k}" for k in range(120)])), {}, "too many for a classification"),
        (lambda t: t.with_columns(y=pl.lit(date(2024, 1, 1))), {}, "holds dates"),
        (lambda t: t, {"groups": "y"}, "which is the target"),
        (lambda t: t, {"keep": ("q",)}, "keep: the table has no column 'q'"),
        (lambda t: t, {"groups": "z"}, "has 3 groups"),
        (lambda t: t, {"groups": "z", "time": "x"}, "Pass one of them"),
        (lambda t: t, {"drop": ("x", "z", "noise")}, "No feature is left"),
        (lambda t: t, {"task": "regression"}, "holds labels"),
    ],
)
def test_bad_tables_are_refused_with_a_remedy(change, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        prepare(change(made("binary")), "y", StudyOptions(**options), 0)
    assert str(caught.value).count(".") >= 1
    assert "\n" not in str(caught.value)


# ---- time ------------------------------------------------------------------------------------------------------------


def test_a_target_of_several_columns_is_refused():
    table = made("binary").drop("y")
    for target in (np.zeros((120, 2)), pl.DataFrame({"a": range(120), "b": range(120)})):
        with pytest.raises(ValueError, match=r"target has 2 columns, and a study predicts one\. Pass one column at"):
            spinney.study(table, target, **QUICK)


def test_plans_follow_from_the_size_of_the_table():
    small, large = Size(1000, 10, 10, 2), Size(1_000_000, 50, 50, 2)
    plan = make_plan(small, 120.0, None, 5, None)
    assert plan.effort == EFFORTS[0]
    assert plan.words[:2] == ["quick-boosting", "boosting"]
    assert rows_to_study(small, plan, 5, 1.0, 120.0) == (1000, plan)
    plan = make_plan(large, 120.0, None, 5, None)
    assert plan.repeats == 1
    assert plan.effort == EFFORTS[-1]
    n_rows, _ = rows_to_study(large, plan, 5, 1.0, 120.0)
    assert n_rows < 200_000
    assert rows_to_study(large, plan, 5, 1.0, 1200.0)[0] > n_rows
    assert rows_to_study(large, plan, 5, 0.2, 120.0)[0] > n_rows
    assert rows_to_study(large, lightened(plan, large, 1.0, 120.0), 5, 1.0, 120.0)[0] > n_rows
    assert make_plan(small, 120.0, ["svm"], 5, 2).words == ["svm"]
    assert "log-boosting" not in make_plan(Size(1000, 10, 10, 0), 120.0, None, 5, None).words
    assert "log-boosting" in make_plan(Size(1000, 10, 10, 0, True), 120.0, None, 5, None).words


def test_folds_of_a_sample_get_one_booster_where_several_would_take_longer():
    medium = Size(200_000, 20, 20, 0)
    plan = make_plan(medium, 60.0, None, 5, None)
    assert work_of("boosting", medium.of(15_000), plan.effort) > work_of("boosting", medium.of(24_000), plan.effort)
    assert rows_to_study(medium, plan, 5, 1.5, 60.0) == (25_000, plan)
    n_rows, light = rows_to_study(medium, plan, 5, 20.0, 60.0)
    assert n_rows < 25_000
    assert light.effort.is_single
    assert light.lead == plan.lead
    n_rows, light = rows_to_study(Size(40_000, 20, 20, 0), plan, 5, 5.0, 60.0)
    assert n_rows == 20_000
    assert light.effort.is_single


def test_nonnegative_targets_get_boosting_with_a_log_link():
    table = made("regression").with_columns(y=pl.col("y").exp())
    found = spinney.study(table, "y", models=["tree", "log-boosting"], repeats=1, cv=2)
    assert found.models["log-boosting"].loss == "poisson"
    assert (found.test_predictions["log-boosting"] > 0).all()


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_a_log_link_is_refused_for_classes_and_negative_targets(task):
    with pytest.raises(ValueError, match=r"^models holds 'log-boosting', which needs a numeric target"):
        spinney.study(made(task), "y", models=["tree", "log-boosting"], repeats=1, cv=2)


def test_a_small_time_limit_ends_with_the_finished_models():
    found = spinney.study(made("binary"), "y", minutes=1e-4, repeats=2, cv=3, models=["tree", "svm", "linear"])
    assert {"tree", "baseline"} <= set(found.models)
    assert any("Time ran out" in note for note in found.notes)
    assert any("no time to fit it to all" in note for note in found.notes)
    found.model.predict(found.X_test)


def test_columns_of_a_wide_table_are_selected():
    """The rows of the selection are used for nothing else: else selected noise would seem predictive."""
    random = np.random.default_rng(0)
    noise = random.standard_normal((240, 300))
    y = random.permutation(240) % 2
    found = spinney.study({f"c{j}": noise[:, j] for j in range(300)} | {"y": y}, "y", minutes=0.3 / 60, repeats=1)
    used = [column for column in found.columns if column.is_used]
    assert len(used) == len(found.X_train) == 50
    n_other = 240 - len(found.y_train) - len(found.y_test)
    assert n_other > 48
    assert any(f"each alone, on {n_other} rows, which are used for nothing else" in note for note in found.notes)
    assert any("too wide" in note and "50 of its 300 columns" in note for note in found.notes)
    assert found["quick-boosting"].scores["roc_auc"].mean() < 0.62
    assert len(found.predict({column.name: noise[:5, int(column.name[1:])] for column in used})) == 5
    predictive = {f"c{j}": noise[:, j] for j in range(300)} | {"c200": noise[:, 200] + y, "y": y}
    assert "c200" in spinney.study(predictive, "y", minutes=0.3 / 60, repeats=1).X_train


@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_the_most_predictive_columns_are_selected(task):
    data = prepare(made(task).with_columns(pl.col("noise").alias("more") * 2), "y", StudyOptions(), 0)
    chosen, rows = screened(data, data.is_test, Columns.read(data.X), 2, 0)
    assert chosen.tolist() == [0, 1]
    assert data.is_test[rows].sum() == data.is_test.sum()
    assert 80 <= len(rows) < 100


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [
        ("1", "1.5", pl.Float64),
        ("1", "x", pl.String),
        ("", "3", pl.Int64),
        ("", "", pl.String),
        ("2020-01-31", "x", pl.String),
        ("true", "maybe", pl.String),
        ("2", "3", pl.Int64),
    ],
)
def test_types_of_text_columns_are_inferred_from_all_rows(tmp_path, first, last, kind):
    rows = [first] * 1000 + [last] * 3
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{value},7\n" for value in rows))
    frame = read.read_file(tmp_path / "t.csv").frame
    assert frame.schema == {"a": kind, "b": pl.Int64}
    assert str(frame["a"][-1]) == (last or "None")


@pytest.mark.parametrize(
    ("name", "meant"), [("roc", "'roc_auc'"), ("acuracy", "'accuracy'"), ("zzz", "Try 'log_loss'")]
)
def test_unknown_metrics_are_named(name, meant):
    with pytest.raises(ValueError, match=f"no metric {name!r}.*{meant}"):
        spinney.study(made("binary"), "y", scoring=name, **QUICK)


@pytest.mark.parametrize(
    ("task", "metric", "meant"),
    [
        ("binary", "r2", ". Try 'log_loss', 'auc' or 'accuracy'."),
        ("multiclass", "rmse", "Try 'log_loss', 'auc' or 'accuracy'."),
        ("regression", "f1", "evaluates classes, but the target is numeric. Try 'rmse', 'mae' or 'r2'."),
        ("regression", "accuracy", "Try 'rmse', 'mae' or 'r2'."),
    ],
)
def test_metrics_that_cannot_score_the_target_are_refused(task, metric, meant):
    with pytest.raises(ValueError, match=rf"^The metric '{metric}' evaluates ") as refused:
        spinney.study(made(task), "y", scoring=["accuracy" if task != "regression" else "r2", metric], **QUICK)
    assert meant in str(refused.value)


@pytest.mark.parametrize("minutes", [0, float("nan"), float("inf"), "two"])
def test_minutes_must_be_a_number_above_zero(minutes):
    with pytest.raises(ValueError, match=r"^minutes must be a number above 0"):
        spinney.study(made("binary"), "y", minutes=minutes)


def test_a_common_reason_of_failures_is_reported_once():
    table = made("binary").with_columns(y=pl.Series(["rare"] + ["usual"] * 119))
    found = spinney.study(table, "y", models=["boosting", "linear", "tree"], repeats=1, cv=3)
    assert [note for note in found.notes if "left out" in note] == [
        "boosting, linear failed and are left out. ValueError: y has only one class, 'usual'. Pass at least two "
        "classes."
    ]


def test_time_as_text_is_reported():
    table = made("binary").with_columns(when=pl.Series([f"week {k % 40:02d}" for k in range(120)]))
    found = spinney.study(table, "y", time="when", models=["tree"])
    assert (
        "The time column 'when' holds text and is sorted alphabetically, from 'week 00' to 'week 39'. If that is not "
        "the order in time, write dates such as 2024-05-31, or numbers." in found.notes
    )


def test_decimal_commas_are_reported(tmp_path):
    table = made("binary").with_columns(pl.col("x").round(3).cast(pl.String).str.replace(".", ",", literal=True))
    found = spinney.study(table, "y", **QUICK)
    assert "x" not in found.X_train
    assert any("'x' is excluded" in note and "comma" in note and "decimal point" in note for note in found.notes)


def test_columns_of_wide_frames_are_looked_up_once(monkeypatch):
    looks, columns = [], pl.DataFrame.columns
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda frame: looks.append(1) or columns.fget(frame)))
    frame = pl.DataFrame({f"c{j}": [1.0, 2.0] for j in range(50)})
    assert pick_table(frame).take(columns=np.arange(40)).width == 40
    assert len(looks) < 10


def test_reading_counts_and_folds_are_cut_where_time_is_short():
    table = ReadTable(made("binary"), ["Read."], clock.monotonic() - 100)
    found = spinney.study(table, "y", minutes=1, repeats=2, models=["tree", "linear"])
    assert found.seconds > 100
    assert found.notes[0] == "Read."
    assert len(found.folds) == 2
    assert any("evaluated on 2 of 5 folds" in note for note in found.notes)
    assert {len(entry.scores["accuracy"]) for entry in found.leaderboard} == {2}


@pytest.mark.parametrize("pace", [1.0, 4.0])
def test_the_time_limit_holds_on_slow_machines(monkeypatch, pace):
    """The clock runs as on a machine that needs `pace` times as long."""
    counted = _Clock()
    for module in (budget, runner, entry, final_fits):
        monkeypatch.setattr(module, "clock", counted)
    fit = runner.Runner.fit

    def slow(self, candidate, rows, limit=None):
        n_rows = min(self.problem.n_rows if rows is None else len(rows), candidate.max_rows or 96)
        if not candidate.is_baseline:
            counted.now += pace * work_of(candidate.name, Size(n_rows, 3, 5, 2), EFFORTS[0])
        return fit(self, candidate, rows, limit)

    monkeypatch.setattr(runner.Runner, "fit", slow)
    options = {"models": ["tree", "linear", "forest", "extra-trees"], "cv": 3}
    found = spinney.study(made("binary"), "y", minutes=2.0 / 60, **options)
    plan = make_plan(Size(96, 3, 5, 2), 2.0, options["models"], 3, None)
    assert found.seconds <= 2.0
    assert len(found.folds) == 3 * plan.repeats if pace == 1 else len(found.folds) <= 3 * plan.repeats
    short = any("Time ran out" in note or "Time was short" in note for note in found.notes)
    assert short == (pace > 1)
    assert found.best in found.models


class _Clock:
    now = 0.0

    def monotonic(self):
        return self.now

    perf_counter = monotonic


def _final_fits(prefer="simplest", weights=("boosting", "tree"), **scores):
    from types import SimpleNamespace

    from spinney._evaluate.runner import Candidate, Trial
    from spinney._evaluate.study.final_fits import FinalFits

    trials = [Trial(Candidate(name, None)) for name in scores]
    final = FinalFits.__new__(FinalFits)
    final.session = SimpleNamespace(metrics=["neg_log_loss"], options=SimpleNamespace(prefer=prefer))
    final.test_ratio, final.weights = 20 / 80, dict.fromkeys(weights)
    final.members = [trial for trial in trials if trial.name != "stack"]
    by_metric = {name: {"neg_log_loss": np.array(values)} for name, values in scores.items()}
    return final, final._ordered(trials, by_metric), by_metric


_FAILS_ONCE = np.array([0.6, -0.1, -0.1, -0.1, -0.1])  # the standard error of the difference exceeds its mean
_BASE, _NEAR = np.array([-0.50, -0.48, -0.52, -0.47, -0.53]), np.array([0.01, -0.01, 0.02, 0.0, -0.01])


@pytest.mark.parametrize(
    ("scores", "prefer", "kept", "why"),
    [
        ({"boosting": _BASE + _NEAR, "stack": _BASE}, "simplest", "boosting", "it is the best model"),
        (
            {"boosting": _BASE - _NEAR, "stack": _BASE},
            "simplest",
            "boosting",
            "it is simpler than stack",
        ),
        ({"boosting": _BASE - _NEAR, "stack": _BASE}, "best", "stack", "it is the best model"),
        ({"boosting": _BASE - 0.1, "stack": _BASE}, "simplest", "stack", "it is the best model"),
        ({"boosting": _BASE - _FAILS_ONCE, "stack": _BASE}, "simplest", "stack", "it is the best model"),
        (
            {"tree": _BASE - _NEAR, "boosting": _BASE, "stack": _BASE - _NEAR},
            "simplest",
            "tree",
            "it is simpler than boosting",
        ),
        ({"knn": _BASE - _NEAR, "boosting": _BASE}, "simplest", "boosting", "it is the best model"),  # none is simpler
    ],
)
def test_the_simplest_model_within_a_standard_error_of_the_best_is_kept(scores, prefer, kept, why):
    final, order, by_metric = _final_fits(prefer, **scores)
    best = final._preferred(order, by_metric)
    assert best.name == kept
    assert why in final._why(best, order)


def test_a_stack_of_one_member_is_that_member():
    final, order, by_metric = _final_fits("best", ["boosting"], stack=_BASE, boosting=_BASE - 0.1)
    best = final._preferred(order, by_metric)
    assert best.name == "boosting"
    assert "the stack gives all weight to it" in final._why(best, order)


def test_the_best_single_model_comes_with_a_stack():
    table = made("binary")
    found = spinney.study(table, "y", models=["tree", "linear", "forest"], repeats=1, cv=3, prefer="best")
    simple = spinney.study(table, "y", models=["tree", "linear", "forest"], repeats=1, cv=3)
    assert found.best == "stack", "the table does not test this"
    members = list(found.models["stack"].named_estimators_)
    assert found.single == next(entry.name for entry in found.leaderboard if entry.name in members)
    assert found.single_model.predict_proba(found.X_test).shape == (24, 2)
    assert simple.best == simple.single != "stack"
    assert simple.single_model is simple.model
    assert any(note.startswith(simple.why) for note in simple.notes)
    with pytest.raises(ValueError, match="prefer must be 'simplest' or 'best'"):
        spinney.study(table, "y", prefer="simple")


@pytest.mark.parametrize("models", [["boosting"], ["linear"], ["knn"], ["svm"], ["tree", "linear", "forest"]], ids=str)
def test_a_saved_model_predicts_the_table_of_the_study(models, tmp_path):
    table = with_columns(
        name=[f"row {k}" for k in range(120)], day=[date(2024, 1, 1) + timedelta(days=3 * k) for k in range(120)]
    )
    found = spinney.study(table, "y", models=models, repeats=1, cv=2, prefer="best")
    assert any(name.startswith("day.") for name in found.X_train.columns)
    expected = found.predict_proba(table)
    found.save(tmp_path / "m")
    saved = [load(tmp_path / "m") for load in (spinney.load, spinney.load_predictor)]
    for model in (found.model, found.single_model, *saved):
        for rows in (table, table.drop("y"), table.to_pandas(), table.to_arrow(), table[::-1][::-1]):
            proba = model.predict_proba(rows)
            assert proba.shape == (120, 2)
            if model is not found.single_model:
                np.testing.assert_array_equal(proba, expected)
    np.testing.assert_array_equal(found.model.predict_proba(table[["noise", "day", "z", "x"]]), expected)
    with pytest.raises(ValueError, match="yet now missing:\n- x"):
        found.model.predict(table.drop("x"))


def _with_gaps() -> pl.DataFrame:
    """Return a table whose target is missing in some rows, so that positions among the others differ."""
    rows = pl.int_range(pl.len())
    return with_columns(key=[f"k{(7 * k) % 120}" for k in range(120)]).with_columns(
        y=pl.when(rows % 9 == 2).then(None).otherwise(pl.col("y"))
    )


@pytest.mark.parametrize("models", [["tree"], ["tree", "forest"]])
@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d %b %Y"])
def test_a_saved_model_reads_dates_as_the_file_of_the_study_has_them(models, form, tmp_path):
    days = [date(2025, 1, 1) + timedelta(days=int(k)) for k in np.random.default_rng(0).permutation(120)]
    lines = [f"{day.strftime(form)},{k % 7},{int(day.month > 2) ^ (k % 9 == 0)}" for k, day in enumerate(days)]
    (tmp_path / "days.csv").write_text("\n".join(["day,x,late", *lines]) + "\n")
    options = {"models": models, "repeats": 1, "cv": 3, "prefer": "best"}
    found = spinney.study(tmp_path / "days.csv", "late", keep=["day"], **options)
    found.save(tmp_path / "late.model")
    model = spinney.load(tmp_path / "late.model")
    columns = {"x": [k % 7 for k in range(120)]}
    as_dates = model.predict_proba(pl.DataFrame({"day": days} | columns))
    as_text = model.predict_proba(pl.DataFrame({"day": [day.strftime(form) for day in days]} | columns))
    np.testing.assert_array_equal(as_text, as_dates)
    assert len(np.unique(as_dates)) > 1
    with pytest.raises(ValueError, match=r"holds 'soon' now; write dates as in 2024-05-31.*as in the training file"):
        model.predict(pl.DataFrame({"day": ["soon"], "x": [1]}))


def test_rows_are_those_of_the_file_the_index_or_a_column(tmp_path):
    table, options = _with_gaps(), {"models": ["tree"], "repeats": 1, "cv": 2}
    table.write_csv(tmp_path / "t.csv")
    labels = np.array([f"r{k}" for k in range(120)])
    of_file = spinney.study(tmp_path / "t.csv", "y", **options)
    of_index = spinney.study(table.to_pandas().set_index(labels), "y", **options)
    of_column = spinney.study(table, "y", id="key", **options)
    of_table = spinney.study(table, "y", **options)
    x = table["x"].to_numpy()
    positions = {
        "t.csv": of_file.test_rows.values - 1,
        "index": [int(label[1:]) for label in of_index.test_rows.values],
        "'key'": [table["key"].to_list().index(value) for value in of_column.test_rows.values],
        "position": of_table.test_rows.values,
    }
    for found, (what, at) in zip([of_file, of_index, of_column, of_table], positions.items(), strict=True):
        np.testing.assert_allclose(x[np.asarray(at, dtype=int)], np.asarray(found.X_test["x"]), rtol=1e-12)
        assert what in found.test_rows.note
        assert len(found.train_rows.values) == len(found.y_train)
    assert "key" not in of_column.X_train.columns
    holey = table.with_columns(key=pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("key"))
    with pytest.raises(ValueError, match="'key' has missing values in 1 row, first in row 5"):
        spinney.study(holey, "y", id="key", **options)


def test_rows_of_a_sampled_file_are_those_of_the_file(tmp_path, monkeypatch):
    table = made("binary", 3000)
    table.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(entry, "MAX_BYTES", 20_000)
    found = spinney.study(tmp_path / "t.parquet", "y", models=["tree"], repeats=1, cv=2)
    assert len(found.y_train) < 1000
    assert table[found.test_rows.values - 1]["x"].to_list() == list(found.X_test["x"])


def test_a_study_predicts_other_tables():
    table = with_columns(
        name=[f"row {k}" for k in range(120)], day=[date(2024, 1, 1) + timedelta(days=3 * k) for k in range(120)]
    )
    found = spinney.study(table, "y", models=["tree"], repeats=1, cv=2)
    assert "name" not in found.X_train.columns
    assert any("." in name for name in found.X_train.columns)  # parts of the date
    for rows in (table, table.drop("y"), table.select("day", "noise", "z", "x"), table.to_pandas(), table.to_arrow()):
        assert found.predict(rows).shape == (120,)
        assert (found.predict(rows) == found.predict(table)).all()
        assert found.predict_proba(rows).shape == (120, 2)
    with pytest.raises(ValueError, match="no column 'x'"):
        found.predict(table.drop("x"))
    assert found.options == {"models": ["tree"], "repeats": 1, "cv": 2}
    with pytest.raises(AttributeError, match="regression study"):
        spinney.study(made("regression"), "y", models=["tree"], repeats=1, cv=2).predict_proba(table)


def test_an_interruption_returns_the_finished_models():
    def interrupt(n_done, n_fits, what, left):
        if what.startswith("forest, fold 1"):
            raise KeyboardInterrupt

    found = spinney.study(made("binary"), "y", models=["tree", "forest"], repeats=1, cv=3, progress=interrupt)
    assert set(found.models) == {"tree", "baseline"}
    assert any("Interrupted" in note for note in found.notes)

    def at_once(n_done, n_fits, what, left):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spinney.study(made("binary"), "y", progress=at_once, **QUICK)


@pytest.mark.parametrize("step", ["linear, all training rows", "tree, all training rows"])
def test_an_interrupted_final_fit_keeps_the_cross_validation(step):
    def interrupt(n_done, n_fits, what, left):
        if what == step:
            raise KeyboardInterrupt

    found = spinney.study(made("binary"), "y", **QUICK, progress=interrupt)
    assert {"tree", "linear", "baseline"} <= set(found.models)
    assert {len(entry.scores["accuracy"]) for entry in found.leaderboard} == {3}
    (late,) = (note for note in found.notes if note.startswith("Interrupted: the models of"))
    assert (found.best in late) != any("training rows: Ctrl-C ended the study" in note for note in found.notes)
    assert not any("there was no time" in note for note in found.notes)
    assert len(found.predict(found.X_test)) == 24


@pytest.mark.parametrize("step", ["_out_of_fold", "_scores_of", "_tested", "_calibration", "_tree"])
def test_ctrl_c_between_the_fits_loses_nothing(monkeypatch, step):
    own = getattr(final_fits.FinalFits, step)

    def interrupt(self, *args):
        if not self.session.was_interrupted:
            signal.raise_signal(signal.SIGINT)
        return own(self, *args)

    monkeypatch.setattr(final_fits.FinalFits, step, interrupt)
    found = spinney.study(made("binary"), "y", **QUICK)
    assert found.is_interrupted
    assert {"tree", "linear", "baseline"} <= set(found.models)
    assert len(found.predict(found.X_test)) == 24


@pytest.mark.slow
@pytest.mark.parametrize(("is_larger", "n_train"), [(True, 160), (False, 160), (False, 1000)])
def test_a_sample_does_not_decide_against_boosting_of_all_rows(monkeypatch, is_larger, n_train):
    """Boosting on many rows is compared with the best model of the sample on rows that neither has seen."""
    import spinney._evaluate.study.session as session

    monkeypatch.setattr(session, "rows_to_study", lambda size, plan, *_: (n_train, plan))
    random = np.random.default_rng(1)
    X = random.uniform(-3, 3, (3000, 3))
    y = X.sum(axis=1) + (3 * np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1]) if is_larger else 0)
    table = {f"x{j}": X[:, j] for j in range(3)} | {"y": y + 0.1 * random.normal(size=3000)}
    models = ["boosting", ("plane", spinney.LinearRegressor())]
    found = spinney.study(table, "y", models=models, repeats=1, cv=3)
    assert ("rows, predicts 150 others better" in found.why) == is_larger
    assert "simpler" not in found.why or not is_larger
    assert any("predicts 150 other rows better than boosting" in note for note in found.notes) != is_larger
    assert (found.best == "boosting") == is_larger
    assert isinstance(found.model, spinney.GradientBoostingRegressor) == is_larger
    assert found.model.score(table_without_y(table), y) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_times_left", "is_compared", "is_refitted"), [(0.3, True, True), (0.6, False, True), (2.0, True, False)]
)
def test_the_fit_of_a_clearly_better_model_to_all_rows_has_its_time(
    monkeypatch, n_times_left, is_compared, is_refitted
):
    """It comes before boosting if it needs most of the time left, and is left out if it needs more than that."""
    import spinney._evaluate.study.session as session

    own = final_fits.FinalFits._last_seconds

    def seconds(self, trials):
        is_plane = [trial.name for trial in trials] == ["plane"]
        return n_times_left * self.session.left if is_plane else own(self, trials)

    monkeypatch.setattr(session, "rows_to_study", lambda size, plan, *_: (160, plan))
    monkeypatch.setattr(final_fits.FinalFits, "_last_seconds", seconds)
    random = np.random.default_rng(1)
    X = random.uniform(-3, 3, (1500, 2))
    table = {"a": X[:, 0], "b": X[:, 1], "y": X.sum(axis=1) + 0.1 * random.normal(size=1500)}
    models = ["boosting", ("plane", spinney.LinearRegressor())]
    found = spinney.study(table, "y", models=models, repeats=1, cv=3, prefer="best", minutes=1)
    assert found.best == "plane"
    assert any("other rows better than boosting" in note for note in found.notes) == is_compared
    assert any("(plane) is fitted to all 1,500 rows" in note for note in found.notes) == is_refitted
    assert any("there was no time to fit it to all rows" in note for note in found.notes) != is_refitted


def test_the_final_boosting_has_default_settings_where_folds_had_single_boosters(monkeypatch):
    import spinney._evaluate.study.session as session

    def light(size, plan, *_):
        return 160, replace(plan, effort=replace(plan.effort, is_single=True))

    monkeypatch.setattr(session, "rows_to_study", light)
    random = np.random.default_rng(1)
    X = random.uniform(-3, 3, (1500, 2))
    table = {"a": X[:, 0], "b": X[:, 1], "y": np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1])}
    found = spinney.study(table, "y", models=["boosting"], repeats=1, cv=3)
    assert found.models["boosting"].early_stopping is True
    assert found.model.early_stopping == spinney.GradientBoostingRegressor().early_stopping
    assert any(note.startswith("The folds had less time: the final boosting") for note in found.notes)


@pytest.mark.parametrize("n_rounds", [1, None])
def test_a_final_fit_that_time_has_cut_short_does_not_replace_a_better_model(monkeypatch, n_rounds):
    """One round of boosting on all rows predicts worse than the model of the training rows."""

    class Cut(final_fits.RoundLimit):
        def __call__(self, state):
            super().__call__(state)
            self.is_reached = n_rounds is not None and self.n_planned > self.n_rounds >= n_rounds
            return self.is_reached

    last_fit = final_fits.FinalFits._last_fit

    def cut(self, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(final_fits, "RoundLimit", Cut)
            return last_fit(self, *args, **options)

    monkeypatch.setattr(final_fits.FinalFits, "_last_fit", cut)
    found = spinney.study(made("regression"), "y", models=["boosting"], repeats=1, cv=3)
    is_earlier = found.model is found.models["boosting"]
    assert is_earlier == (n_rounds == 1)
    assert any("is that of the training rows, which predicts the test set better" in one for one in found.notes) == (
        is_earlier
    )
    assert any("is fitted to all 120 rows" in note for note in found.notes) != is_earlier


def table_without_y(table):
    return {name: values for name, values in table.items() if name != "y"}


def test_progress_counts_to_the_end():
    calls = []
    spinney.study(made("regression"), "y", progress=lambda *step: calls.append(step), **QUICK)
    assert calls[-1][:2] == (calls[-1][1], calls[-1][1])
    assert all(left >= 0 for *_, left in calls)
    assert [n for n, *_ in calls] == sorted(n for n, *_ in calls)


def test_scorers_score_predictions_as_models():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 200)
    proba = random.dirichlet([1, 1], 200)
    scorers = Scorers({"neg_log_loss": get_scorer("neg_log_loss"), "roc_auc": get_scorer("roc_auc")}, np.array([0, 1]))
    found = scorers.with_interval("roc_auc", proba, y, 0)
    assert found.low < found.value < found.high
    sure = scorers.with_interval("neg_log_loss", np.where(np.eye(2)[y] > 0, 1 - 1e-9, 1e-9), y, 0)
    assert sure.high <= 0.0
    from sklearn.metrics import log_loss, roc_auc_score

    assert found.value == pytest.approx(roc_auc_score(y, proba[:, 1]), rel=1e-15)
    assert scorers.score("neg_log_loss", proba, y) == pytest.approx(-log_loss(y, proba))
    assert scorers.score("neg_log_loss", proba[:3], np.zeros(3)) < 0  # one class alone
    assert np.isnan(scorers.score("roc_auc", proba[:3], np.zeros(3)))


def test_intervals_of_test_scores_know_bounds_groups_and_few_rows():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 60)
    proba = np.eye(2)[np.where(random.random(60) < 0.9, y, 1 - y)]

    def percent(model, X, y):
        return 100 * float((model.predict(X) == y).mean())

    scorers = Scorers({"accuracy": get_scorer("accuracy"), "percent": percent}, np.array([0, 1]))
    inner, outer = (scorers.with_interval(name, proba, y, 0) for name in scorers.metrics)
    assert outer.value == pytest.approx(100 * inner.value)
    assert outer.high - outer.value == pytest.approx(outer.value - outer.low)
    assert inner.low < inner.value < inner.high < 1
    perfect = scorers.with_interval("accuracy", np.eye(2)[y], y, 0)
    assert perfect.value == perfect.high == 1
    assert 0.8 < perfect.low < 0.98
    together = scorers.with_interval("percent", proba, y, 0, groups=proba.argmax(axis=1) == y)
    assert np.isnan(together.low)  # two groups
    groups = np.argsort(np.argsort(proba.argmax(axis=1) == y, kind="stable")) // 6  # errors are in one group
    wide = scorers.with_interval("percent", proba, y, 0, groups)
    assert wide.high - wide.low > 1.5 * (outer.high - outer.low)


def test_splitters_keep_duplicates_and_groups_apart():
    random = np.random.default_rng(0)
    table = pl.DataFrame(
        {"a": random.normal(size=100), "b": random.normal(size=100), "y": random.choice(["p", "q"], 100)}
    )
    twice = pl.concat([table, table])
    options = {"models": [("nearest", spinney.KNeighborsClassifier(1))], "repeats": 1, "scoring": "accuracy"}
    found = spinney.study(twice, "y", cv=StratifiedKFold(5, shuffle=True, random_state=0), **options)
    assert found["nearest"].mean < 0.7
    grouped = twice.with_columns(g=np.tile(np.arange(100), 2))
    with pytest.raises(ValueError, match=r"cv splits groups.*GroupKFold"):
        spinney.study(grouped, "y", groups="g", cv=StratifiedKFold(5, shuffle=True, random_state=0), **options)
    assert spinney.study(grouped, "y", groups="g", cv=GroupKFold(5), **options)["nearest"].mean < 0.7


def test_a_large_test_set_is_no_sample_of_the_table():
    random = np.random.default_rng(3)
    a, g = random.normal(size=120), np.arange(120) % 4
    found = spinney.study(
        {"a": a, "b": random.normal(size=120), "g": g, "y": a / 2 + random.normal(size=120)},
        "y",
        groups="g",
        models=["linear", "boosting"],
        repeats=1,
    )
    assert not any("no time" in note for note in found.notes)
    assert found.best in ("linear", "stack")


@pytest.mark.parametrize("scoring", ["ap", "auc"])
def test_a_class_that_some_folds_lack_does_not_hide_the_scores(scoring):
    table = made("binary", 300)
    rare = pl.Series("y", ["rare"] * 4 + table["y"].to_list()[4:])
    found = spinney.study(table.with_columns(rare), "y", scoring=scoring, **QUICK)
    assert not np.isnan([entry.mean for entry in found.leaderboard]).any()
    assert found.best != "baseline"


@pytest.mark.parametrize("when", [0.5, 0.85])
def test_a_model_that_fails_late_is_left_out(when):
    calls, most = [0], [10**9]

    def distance(a, b):
        calls[0] += 1
        if calls[0] > most[0]:
            raise RuntimeError("too far")
        return float(np.abs(a - b).sum())

    def found():
        calls[0] = 0
        models = ["linear", ("my_nearest", spinney.KNeighborsRegressor(metric=distance))]
        return spinney.study(made("regression", 60), "y", models=models, repeats=2, cv=2)

    assert "my_nearest" in found().models
    most[0] = int(when * calls[0])
    late = found()
    assert "my_nearest" not in late.models
    assert any("my_nearest failed" in note and "too far" in note for note in late.notes)


def test_repeats_and_names_of_metrics_are_checked():
    with pytest.raises(ValueError, match="repeats must be a number of at least 1"):
        spinney.study(made("binary"), "y", repeats=0)
    with pytest.raises(ValueError, match=r"several metrics of the same name.*dict"):
        spinney.compare(["linear"], np.eye(20), [0, 1] * 10, scoring=[lambda *_: 1.0, lambda *_: 2.0])


def test_the_tree_of_a_rare_class_has_leaves():
    random = np.random.default_rng(1)
    x, z = random.normal(size=(2, 3000))
    y = random.random(3000) < np.where(x > 1, 0.3, 0.03)
    found = spinney.study({"x": x, "z": z, "y": y}, "y", models=["tree"], repeats=1)
    assert 2 <= found.tree.get_n_leaves() <= 6
    assert found["tree"].mean > found["baseline"].mean
    section = tree_section(found, View(found.tree, found.X_train), View(found.tree, found.X_test))
    assert section["n_leaves"][section["chosen"]] == section["chosen_leaves"] == found.tree.get_n_leaves()
    by_error = spinney.study({"x": x, "z": z, "y": y}, "y", models=["tree"], repeats=1, scoring="accuracy")
    assert by_error.tree.get_n_leaves() == 1


def test_the_search_for_leaks_does_not_see_the_targets_of_the_test_set():
    table = made("regression", 400).with_columns(leak=pl.col("y") * 2)
    found = prepare(table, "y", StudyOptions(), 0)
    assert [one.is_leak for one in found.columns] == [False, False, False, True]
    changed = np.where(found.is_test, np.random.default_rng(1).normal(size=400), table["y"])
    again = prepare(table.with_columns(y=changed), "y", StudyOptions(), 0)
    assert [one.note for one in again.columns] == [one.note for one in found.columns]
    assert (again.is_test == found.is_test).all()


@pytest.mark.parametrize("how", ["groups", "time"])
def test_validation_sets_of_models_respect_groups_and_times(how):
    random = np.random.default_rng(0)
    unit = np.repeat(np.arange(60), 20)
    table = {"unit": unit, "a": random.normal(size=60)[unit], "b": random.normal(size=60)[unit]}
    table["y"] = random.normal(size=60)[unit] + 0.1 * random.normal(size=1200)  # the columns tell units apart, no more
    found = spinney.study(table, "y", models=["tree"], repeats=1, **{how: "unit"})
    assert found.models["tree"].get_n_leaves() < 10


def test_classes_of_fewer_rows_than_folds_are_studied():
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=60), "b": rng.normal(size=60), "class": np.array([f"c{i % 12}" for i in range(60)])}
    found = spinney.study(table, "class", minutes=0.1, models=["tree"])
    assert {entry.name for entry in found.leaderboard} >= {"tree", "baseline"}
    assert all(len(held_out) for _, held_out in found.folds)


@pytest.mark.parametrize(
    "models", [["stack"], ["perceptron"], ["linear_svm"], [("baseline", spinney.DecisionTreeClassifier())]]
)
def test_models_that_a_study_cannot_rank_are_refused(models):
    with pytest.raises(
        ValueError, match=r"^models holds '(stack|baseline)', which every study|^models holds .* no class"
    ):
        spinney.study(made("multiclass"), target="y", models=models)


def test_folds_of_a_splitter_are_used():
    from sklearn.model_selection import ShuffleSplit

    found = spinney.study(made("regression"), "y", models=["tree"], cv=ShuffleSplit(3, test_size=0.25, random_state=0))
    assert [len(held_out) for _, held_out in found.folds] == [24] * 3
    with pytest.raises(ValueError, match="cv must be a number of folds of at least 2"):
        spinney.study(made("regression"), "y", cv=1)


def test_a_sample_of_the_rows_has_all_classes(monkeypatch):
    import spinney._evaluate.study.session as session

    monkeypatch.setattr(session, "rows_to_study", lambda size, plan, *_: (100, plan))
    random = np.random.default_rng(0)
    labels = np.where(np.arange(4000) % 200 == 0, "rare", np.where(np.arange(4000) % 2 == 0, "a", "b"))
    table = {"x": random.normal(size=4000), "z": random.normal(size=4000), "y": labels}
    found = spinney.study(table, "y", models=["tree"], repeats=1)
    assert len(found.y_train) < 200
    assert (found.y_train == "rare").sum() >= 10
    assert any("random sample" in note for note in found.notes)


def test_a_table_of_groups_alone_is_refused():
    with pytest.raises(ValueError, match=r"No feature is left: the table has the columns 'y', 'g', which are"):
        spinney.study({"y": [0, 1] * 40, "g": np.arange(80) % 9}, "y", groups="g")
