"""Survival trees: splits, leaves and curves beside the slow reference, and what must not change them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle import survival_trees as oracle

AT = np.array([0.5, 1.0, 2.5, 4.0, 7.0, 20.0])


def rows_of(seed, n=40, n_causes=1, truncated=False, weighted=False, n_times=9):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n, 3)).astype(float)
    time = rng.integers(1, n_times, n) + X[:, 0]
    cause = rng.integers(0, n_causes + 1, n)
    cause[:n_causes] = np.arange(1, n_causes + 1)
    entry = np.where(rng.random(n) < 0.5, np.floor(time * rng.random(n) * 4) / 4, 0.0) if truncated else np.zeros(n)
    weight = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    weight[:n_causes] = 1.0
    return X, oracle.Rows(time, cause, entry, weight)


def target_of(rows):
    return np.array(list(zip(rows.cause.tolist(), rows.time, strict=True)), dtype=[("event", int), ("time", float)])


def signed(rows):
    return np.where(rows.cause > 0, rows.time, -rows.time)


def fit(X, rows, kind=spinney.SurvivalTree, **parameters):
    return kind(**parameters).fit(X, target_of(rows), rows.weight, entry=rows.entry)


@given(
    seed=st.integers(0, 10_000),
    n_causes=st.integers(1, 2),
    truncated=st.booleans(),
    weighted=st.booleans(),
    min_leaf=st.integers(1, 8),
)
def test_trees_and_curves_are_those_of_the_reference(seed, n_causes, truncated, weighted, min_leaf):
    X, rows = rows_of(seed, 24, n_causes, truncated, weighted)
    model = fit(X, rows, min_samples_leaf=min_leaf, max_depth=3)
    used = rows.weight > 0
    expected = oracle.leaves(X, rows, min_leaf, 3)[used]
    found = np.unique(model.apply(X[used]), return_inverse=True)[1]
    np.testing.assert_array_equal(found, expected)
    everything = rows[used]
    risk = model.predict(X).reshape(len(X), -1)[used]
    survival = model.predict_survival_function(X, AT)[used]
    hazard = model.predict_cumulative_hazard(X, AT).reshape(len(X), len(AT), -1)[used]
    incidence = model.predict_cumulative_incidence(X, AT).reshape(len(X), len(AT), -1)[used]
    for leaf in np.unique(expected):
        of_leaf = everything[expected == leaf]
        row = int(np.flatnonzero(expected == leaf)[0])
        if not truncated:  # an empty set of rows at risk ends the reference's curve
            np.testing.assert_allclose(survival[row], oracle.survival(of_leaf, AT), atol=1e-12)
        for j in range(model.n_outputs_):
            np.testing.assert_allclose(risk[row, j], oracle.relative_hazard(of_leaf, everything, j + 1))
            np.testing.assert_allclose(hazard[row, :, j], oracle.hazard(of_leaf, AT, j + 1), atol=1e-12)
            if not truncated:
                np.testing.assert_allclose(incidence[row, :, j], oracle.incidence(of_leaf, AT, j + 1), atol=1e-12)


@given(seed=st.integers(0, 10_000), truncated=st.booleans())
def test_a_weight_of_two_is_a_row_twice(seed, truncated):
    X, rows = rows_of(seed, 30, truncated=truncated, weighted=True)
    copies = np.repeat(np.arange(len(X)), rows.weight.astype(int))
    weighted = fit(X, rows)
    once = oracle.Rows(rows.time, rows.cause, rows.entry, np.ones(len(X)))[copies]
    repeated = fit(X[copies], once)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(weighted.predict_survival_function(X, AT), repeated.predict_survival_function(X, AT))


@given(seed=st.integers(0, 10_000), unit=st.sampled_from([1e-3, 0.1, 365.25, 1e6]))
def test_the_unit_of_time_and_the_order_of_rows_do_not_matter(seed, unit):
    X, rows = rows_of(seed, truncated=True)
    order = np.random.default_rng(seed).permutation(len(X))
    model = fit(X, rows, max_depth=4)
    changed = oracle.Rows(rows.time * unit, rows.cause, rows.entry * unit, rows.weight)
    other = fit(X[order], changed[order], max_depth=4)
    assert model.fingerprint() == other.fingerprint()
    np.testing.assert_array_equal(
        model.predict_survival_function(X), other.predict_survival_function(X, model.event_times_ * unit)
    )


def test_without_censoring_a_curve_is_the_fraction_of_later_times():
    X, rows = rows_of(3, 60)
    rows.cause[:] = 1
    model = fit(X, rows, min_samples_leaf=8)
    leaf = model.apply(X)
    for k in np.unique(leaf):
        later = (rows.time[leaf == k][:, np.newaxis] > AT).mean(axis=0)
        np.testing.assert_allclose(model.predict_survival_function(X[leaf == k][:1], AT)[0], later, atol=1e-12)


def test_weights_of_any_unit_and_fractions():
    X, rows = rows_of(5)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, len(X))
    y = signed(rows)
    model = spinney.SurvivalTree(max_depth=3).fit(X, y, weight)
    other = spinney.SurvivalTree(max_depth=3).fit(X, y, weight * 1024)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    whole = spinney.SurvivalTree(max_depth=3).fit(X, y, np.full(len(X), 0.25))
    np.testing.assert_array_equal(whole.predict(X), spinney.SurvivalTree(max_depth=3).fit(X, y).predict(X))


@pytest.mark.parametrize("kind", ["tree", "surrogates", "random"])
def test_categories_and_missing_values(kind):
    rng = np.random.default_rng(0)
    word = np.array(["a", "b", "c", "d"], dtype=object)[rng.integers(0, 4, 300)]
    number = rng.normal(size=300)
    number[::5] = np.nan
    rate = np.where(np.isin(word, ["a", "c"]), 4.0, 1.0) * np.where(np.isnan(number), 3.0, 1.0)
    time = rng.exponential(1 / rate)
    word[::11] = None
    X = pd.DataFrame({"word": word, "number": number})
    options = {"tree": {}, "surrogates": {"missing": "surrogate"}, "random": {"splitter": "random", "random_state": 0}}
    model = spinney.SurvivalTree(min_samples_leaf=20, max_depth=3, **options[kind]).fit(X, time)
    assert model.score(X, time) > 0.65
    if kind == "tree":
        a, b, c = (model.predict(pd.DataFrame({"word": [w], "number": [0.5]}))[0] for w in "abc")
        assert a == c > b


def test_pruning_chooses_the_true_size_and_keeps_curves():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 4))
    time, end = rng.exponential(np.where(X[:, 0] > 0, 1.0, 5.0)), rng.exponential(6, 600)
    y = np.where(time < end, time, -end)
    model = spinney.SurvivalTree(min_samples_leaf=10, prune="cv", random_state=0).fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.tree_.feature[0] == 0
    whole = spinney.SurvivalTree(min_samples_leaf=10).fit(X, y)
    again = whole.pruned(alpha=model.alpha_)
    np.testing.assert_array_equal(again.apply(X), model.apply(X))
    np.testing.assert_array_equal(again.predict_survival_function(X), model.predict_survival_function(X))
    held_out = spinney.SurvivalTree(prune="validation", validation_fraction=0.3, random_state=0).fit(X, y)
    assert 2 <= held_out.get_n_leaves() < whole.get_n_leaves()
    root = whole.pruned(cp=1.0)
    np.testing.assert_allclose(root.leaf_curve(0).cumulative_hazard[-1, 0], root.predict_cumulative_hazard(X)[0, -1])


def test_pruning_by_a_scorer_of_rows_with_entries_and_weights():
    X, rows = rows_of(4, 80, truncated=True, weighted=True)
    model = fit(X, rows, prune="cv", cv=4, scoring=lambda model, X, y: model.score(X, y), random_state=0)
    assert model.cp_table_ is not None


def test_the_picture_of_the_curves():
    X, rows = rows_of(2, 80)
    model = fit(X, rows, max_leaf_nodes=4)
    ax = model.plot_curves()
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert len(lines) == 4
    for rule in model.rules():
        (label,) = [text for text in lines if text.startswith(rule.conditions[0].describe(show_missing=False))][:1]
        assert lines[label].get_ydata()[0] == 1
    highest = max(model.rules(), key=lambda rule: rule.prediction)
    np.testing.assert_array_equal(ax.get_lines()[-1].get_ydata()[1:-1], model.leaf_curve(highest.node).survival)
    assert fit(X, rows, min_samples_leaf=80).plot_curves(ax).get_lines()[-1].get_label() == "all: 80 rows"
    with pytest.raises(ValueError, match="at most 8 curves"):
        fit(X, rows, min_samples_leaf=2).plot_curves()


def test_quantiles_are_the_first_times_of_the_curve():
    X, rows = rows_of(7, 80)
    model = fit(X, rows, max_depth=2)
    curve = model.predict_survival_function(X)
    for q in (0.25, 0.5, 0.9):
        for row, quantile in enumerate(model.predict_quantile(X, q)):
            reached = np.flatnonzero(curve[row] <= 1 - q + 1e-12)
            assert quantile == (model.event_times_[reached[0]] if len(reached) else np.inf)
    np.testing.assert_array_equal(model.predict_median(X), model.predict_quantile(X, 0.5))


def test_forms_of_the_target():
    X, rows = rows_of(9)
    y = signed(rows)
    expected = spinney.SurvivalTree(max_depth=3).fit(X, y)
    words = np.where(rows.cause > 0, "death", None)
    for target in (
        target_of(rows),
        pd.DataFrame({"time": rows.time, "event": rows.cause > 0}),
        pd.DataFrame({"status": rows.cause, "days": rows.time.astype(int)}),
        pd.DataFrame({"days": rows.time, "cause": words}),
    ):
        model = spinney.SurvivalTree(max_depth=3).fit(X, target)
        assert model.fingerprint() == expected.fingerprint()
        assert model.score(X, target) == expected.score(X, y)
    assert spinney.SurvivalTree().fit(X, pd.DataFrame({"time": rows.time, "cause": words})).causes_.tolist() == [
        "death"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [-1.0] * 40}, "No event of y has happened"),
        ({"y": np.zeros(40)}, "Times must be above 0"),
        ({"y": np.ones((40, 2))}, "Which column of y holds events"),
        ({"entry": np.full(40, 100.0)}, "must enter at time 0 or later, and before its own time"),
        ({"entry": [1.0]}, "entry has shape"),
        ({"max_bins": 10}, "max_bins cannot be combined with criterion='log_rank'"),
        ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst cannot be combined"),
        ({"missing": "surrogate", "missing_fallback": "stop"}, "rows stay at splits"),
    ],
)
def test_errors(change, message):
    X, rows = rows_of(1)
    arguments = {"y": target_of(rows)} | {name: change[name] for name in ("y", "entry") if name in change}
    parameters = {name: value for name, value in change.items() if name not in ("y", "entry")}
    with pytest.raises(ValueError, match=message):
        spinney.SurvivalTree(**parameters).fit(X, **arguments)


def test_causes_that_the_model_does_not_know():
    X, rows = rows_of(1)
    other = pd.DataFrame({"time": rows.time, "event": rows.cause * 3})
    with pytest.raises(ValueError, match="cause 3, which the model does not know"):
        fit(X, rows).score(X, other)


def test_files_and_pickles(tmp_path):
    X, rows = rows_of(2, 60, n_causes=2, truncated=True)
    model = fit(X, rows, min_samples_leaf=5)
    model.save(tmp_path / "model")
    for other in (spinney.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_cumulative_incidence(X), model.predict_cumulative_incidence(X))
        np.testing.assert_array_equal(other.event_times_, model.event_times_)
        assert other.causes_.tolist() == [1, 2]
        assert other.score(X, target_of(rows)) == model.score(X, target_of(rows))
    predictor = spinney.load_predictor(tmp_path / "model")
    np.testing.assert_array_equal(predictor.predict(X[:1])[0], model.predict(X)[0])


# ---- figures of other programs -------------------------------------------------------------------------------------

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "survival.json").read_text())


def pbc():
    table = pd.read_csv(Path(__file__).parents[2] / "golden" / "data" / "pbc.csv")
    table = table.dropna(subset=["age", "bili", "albumin", "copper", "protime", "time", "status"])
    return table[["age", "bili", "albumin", "copper", "protime"]], table["time"].to_numpy(float), table["status"]


def test_the_tree_of_scikit_survival():
    X, time, status = pbc()
    golden = GOLDEN["tree"]
    model = spinney.SurvivalTree(max_depth=4, min_samples_leaf=15).fit(X, np.where(status == "dead", time, -time))
    assert model.tree_.feature.tolist() == golden["feature"]
    np.testing.assert_allclose(model.tree_.threshold, golden["threshold"], rtol=1e-6)
    some = X.iloc[golden["rows"]]
    np.testing.assert_allclose(model.predict_survival_function(some, golden["times"]), golden["survival"], atol=1e-9)
    np.testing.assert_allclose(model.predict_cumulative_hazard(some, golden["times"]), golden["hazard"], atol=1e-9)


def test_log_rank_statistics_and_incidences_of_scikit_survival():
    X, time, status = pbc()
    nothing = np.zeros(len(time))
    rows = oracle.Rows(time, (status == "dead").to_numpy(int), nothing, nothing + 1)
    for name, statistic in GOLDEN["log_rank"].items():
        np.testing.assert_allclose(oracle.log_rank(rows, X[name] > X[name].median()), statistic, rtol=1e-9)
    causes = pd.DataFrame({"time": time, "cause": status.replace("censored", "")})
    model = spinney.SurvivalTree(max_depth=1, min_samples_leaf=len(X)).fit(X, causes)
    assert model.causes_.tolist() == ["dead", "transplant"]
    found = model.predict_cumulative_incidence(X.iloc[:1], GOLDEN["incidence"]["times"])[0]
    for j, cause in enumerate(model.causes_):
        np.testing.assert_allclose(found[:, j], GOLDEN["incidence"][cause], atol=1e-12)


def test_metrics_of_scikit_survival():
    X, time, status = pbc()
    golden, at = GOLDEN["metrics"], GOLDEN["tree"]["times"]
    time = time + np.arange(len(time)) / 1e4  # without ties, for which there are two conventions
    y, half = np.where(status == "dead", time, -time), np.arange(len(time)) % 2 == 0
    risk = np.log(X["bili"].to_numpy())
    survival = np.exp(-np.outer(np.exp(risk - 1), np.array(at) / 3000))
    train, test = y[half], y[~half]
    auc, mean = spinney.time_dependent_auc(train, test, risk[~half], at)
    np.testing.assert_allclose(auc, golden["auc"])
    assert mean == pytest.approx(golden["mean_auc"])
    np.testing.assert_allclose(spinney.survival_brier_score(train, test, survival[~half], at), golden["brier"])
    assert spinney.integrated_brier_score(train, test, survival[~half], at) == pytest.approx(golden["ibs"])
    assert spinney.concordance_index(y, risk) == pytest.approx(golden["concordance"])
