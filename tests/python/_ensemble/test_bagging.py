"""Bagging of any estimator: the samples, the members, the votes, out of bag."""

import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import spinney
from processes import run
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_absolute_error
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier as ScikitTree
from sweep import covering

IRIS, SPECIES = load_iris(return_X_y=True)
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
BLURRED = IRIS + np.random.default_rng(0).normal(0, 0.7, IRIS.shape)  # so that members disagree
SETTINGS = [
    {},
    {"max_samples": 0.4},
    {"max_samples": 60, "max_features": 2},
    {"bootstrap": False, "max_samples": 0.5, "max_features": 0.5},
    {"bootstrap_features": True},
]


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted to; predicts the first class it saw."""

    def fit(self, X, y, tag=None, text=None):
        self.X_, self.y_, self.tag_, self.text_ = X, y, tag, text
        self.thread_ = threading.get_ident()
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class FixedLabel(ClassifierMixin, BaseEstimator):
    """Predicts a fixed label, chosen by its seed."""

    def __init__(self, labels=("a", "b"), random_state=None):
        self.labels = labels
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.labels[self.random_state % len(self.labels)])


# ---- like scikit-learn -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "member", [KNeighborsClassifier(3), ScikitTree(), make_pipeline(StandardScaler(), ScikitTree())]
)
def test_members_and_predictions_are_those_of_scikit_learn(member, settings):
    ours = spinney.BaggingClassifier(member, 6, random_state=7, **settings).fit(BLURRED, SPECIES)
    theirs = ensemble.BaggingClassifier(member, 6, random_state=7, **settings).fit(BLURRED, SPECIES)
    for a, b in zip(ours.estimators_samples_, theirs.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(ours.estimators_features_, theirs.estimators_features_, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(ours.predict_proba(BLURRED), theirs.predict_proba(BLURRED))
    np.testing.assert_array_equal(ours.predict(BLURRED), theirs.predict(BLURRED))


def test_out_of_bag_is_that_of_scikit_learn():
    settings = {"n_estimators": 35, "oob_score": True, "random_state": 1}
    ours = spinney.BaggingClassifier(ScikitTree(), **settings).fit(BLURRED, SPECIES)
    theirs = ensemble.BaggingClassifier(ScikitTree(), **settings).fit(BLURRED, SPECIES)
    np.testing.assert_allclose(ours.oob_decision_function_, theirs.oob_decision_function_, rtol=1e-12)
    assert ours.oob_score_ == theirs.oob_score_ < 1
    ours = spinney.BaggingRegressor(KNeighborsRegressor(2), **settings).fit(DIABETES, PROGRESS)
    theirs = ensemble.BaggingRegressor(KNeighborsRegressor(2), **settings).fit(DIABETES, PROGRESS)
    np.testing.assert_allclose(ours.oob_prediction_, theirs.oob_prediction_, rtol=1e-12)
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, rel=1e-12)


def test_the_decision_function_is_the_mean_of_the_members():
    model = spinney.BaggingClassifier(SVC(), 5, random_state=0).fit(BLURRED, SPECIES)
    each = [member.decision_function(BLURRED) for member in model.estimators_]
    np.testing.assert_allclose(model.decision_function(BLURRED), np.mean(each, axis=0))
    assert not hasattr(spinney.BaggingClassifier(), "decision_function")


# ---- samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_samples", [None, 0.2])
def test_a_tree_by_weights_is_the_tree_of_its_rows(max_samples):
    model = spinney.BaggingRegressor(None, 5, max_samples=max_samples, random_state=0).fit(DIABETES, PROGRESS)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        alone = spinney.DecisionTreeRegressor(random_state=member.random_state)
        alone._random_ties = True
        alone.fit(DIABETES[rows], PROGRESS[rows])
        np.testing.assert_allclose(member.predict(DIABETES), alone.predict(DIABETES), rtol=1e-9)


def test_trees_see_the_table_itself_and_others_only_their_rows():
    seen = []

    class Watched(spinney.DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append((X is BLURRED, sample_weight.sum()))
            return super().fit(X, y, sample_weight)

    spinney.BaggingClassifier(Watched(), 4, n_jobs=2).fit(BLURRED, SPECIES)
    assert seen == [(True, 150.0)] * 4
    model = spinney.BaggingClassifier(Recorder(), 4, max_samples=20, n_jobs=2).fit(BLURRED, SPECIES)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(member.X_, BLURRED[rows])
        np.testing.assert_array_equal(member.y_, SPECIES[rows])


@pytest.mark.parametrize("bootstrap", [True, False])
def test_groups_stay_together(bootstrap):
    groups = np.repeat([f"g{k}" for k in range(30)], 5)[np.random.default_rng(0).permutation(150)]
    settings = {"bootstrap": bootstrap, "max_samples": 0.5, "oob_score": True, "random_state": 0}
    model = spinney.BaggingClassifier(KNeighborsClassifier(1), 40, **settings).fit(BLURRED, SPECIES, groups=groups)
    most = 0
    for rows in model.estimators_samples_:
        counts = np.bincount(rows, minlength=150)
        assert len(rows) == 15 * 5
        for group in np.unique(groups):
            assert np.ptp(counts[groups == group]) == 0
        most = max(most, counts.max())
    assert bootstrap == (most > 1)


def test_groups_make_the_out_of_bag_score_honest():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 5, axis=0)  # five copies of each row, labels at random
    y, groups = np.repeat(rng.integers(0, 2, 60), 5), np.repeat(np.arange(60), 5)
    model = spinney.BaggingClassifier(KNeighborsClassifier(1), 50, oob_score=True, random_state=0)
    assert model.fit(X, y).oob_score_ > 0.95
    assert model.fit(X, y, groups=groups).oob_score_ < 0.65


@pytest.mark.parametrize(
    ("stratified", "max_samples", "expected"),
    [(True, None, [90, 30, 10]), (True, 0.5, [45, 15, 5]), (True, 13, [9, 3, 1]), ("balanced", None, [10, 10, 10]),
     ("balanced", 0.5, [5, 5, 5]), ("balanced", 60, [20, 20, 20])],
)  # fmt: skip
def test_stratified_samples_have_the_numbers_asked_for(stratified, max_samples, expected):
    y = np.repeat(["a", "b", "c"], [90, 30, 10])
    X = np.zeros((130, 1))
    model = spinney.BaggingClassifier(None, 5, stratified=stratified, max_samples=max_samples, random_state=0)
    for rows in model.fit(X, y).estimators_samples_:
        assert np.unique(y[rows], return_counts=True)[1].tolist() == expected


def test_strata_serve_a_regression():
    strata = np.arange(442) % 4
    model = spinney.BaggingRegressor(None, 3, max_samples=40, random_state=0).fit(DIABETES, PROGRESS, strata=strata)
    for rows in model.estimators_samples_:
        assert np.bincount(strata[rows]).tolist() == [10, 10, 10, 10]


def test_groups_within_strata_are_drawn_from_each():
    groups, y = np.repeat(np.arange(20), 5), np.repeat([0, 1], [75, 25])
    X = np.arange(100.0)[:, None]
    model = spinney.BaggingClassifier(None, 5, stratified=True, random_state=0).fit(X, y, groups=groups)
    for rows in model.estimators_samples_:
        assert np.bincount(y[rows]).tolist() == [75, 25]
        assert (np.ptp(np.bincount(rows, minlength=100).reshape(20, 5), axis=1) == 0).all()
    with pytest.raises(ValueError, match="has rows of several strata"):
        model.fit(X, y, groups=np.zeros(100))


# ---- weights and metadata --------------------------------------------------------------------------------------------


def test_rows_of_weight_0_are_never_drawn():
    weight = np.ones(150)
    weight[::3] = 0
    for member in (None, KNeighborsClassifier(1), GaussianNB()):
        model = spinney.BaggingClassifier(member, 3, random_state=0).fit(BLURRED, SPECIES, weight)
        for rows in model.estimators_samples_:
            assert len(rows) == 100
            assert (rows % 3 != 0).all()


def test_weights_of_a_sample_drawn_by_weight_are_not_used_again():
    weight = np.random.default_rng(0).uniform(0.1, 3, 442)
    model = spinney.BaggingRegressor(Ridge(), 4, random_state=0).fit(DIABETES, PROGRESS, weight)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        np.testing.assert_allclose(member.coef_, Ridge().fit(DIABETES[rows], PROGRESS[rows]).coef_)
    whole = spinney.BaggingRegressor(Ridge(), 1, bootstrap=False).fit(DIABETES, PROGRESS, weight).estimators_[0]
    np.testing.assert_allclose(whole.coef_, Ridge().fit(DIABETES, PROGRESS, weight).coef_)


def test_rows_are_drawn_by_weight():
    weight = np.where(SPECIES == 0, 8.0, 1.0)
    model = spinney.BaggingClassifier(KNeighborsClassifier(1), 60, random_state=0).fit(BLURRED, SPECIES, weight)
    drawn = np.concatenate(model.estimators_samples_)
    fraction = np.mean(SPECIES[drawn] == 0)
    assert fraction == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / len(drawn)))


def test_weights_mean_repeated_rows_on_average():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(40, 2)), rng.normal(size=40), rng.integers(0, 4, 40)
    new = rng.normal(size=(30, 2))
    n = 80
    settings = {"n_estimators": n, "max_samples": int(weight.sum()), "random_state": 0}
    weighted = spinney.BaggingRegressor(KNeighborsRegressor(1), **settings).fit(X, y, weight)
    repeated = spinney.BaggingRegressor(KNeighborsRegressor(1), **settings).fit(X.repeat(weight, 0), y.repeat(weight))
    spread = np.std([member.predict(new) for member in repeated.estimators_], axis=0) * np.sqrt(2 / n)
    assert (np.abs(weighted.predict(new) - repeated.predict(new)) < 4.5 * spread + 1e-12).all()


def test_metadata_by_row_is_cut_and_other_metadata_is_not():
    tag = pd.Series(np.arange(150), index=np.arange(150)[::-1])
    model = spinney.BaggingClassifier(Recorder(), 3, random_state=0).fit(BLURRED, SPECIES, tag=tag, text="as it is")
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(member.tag_, rows)
        assert member.text_ == "as it is"


# ---- votes -----------------------------------------------------------------------------------------------------------


def test_hard_and_soft_votes_by_hand():
    model = spinney.BaggingClassifier(KNeighborsClassifier(5), 9, random_state=0).fit(BLURRED, SPECIES)
    shares = np.mean([member.predict_proba(BLURRED) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(BLURRED), shares)
    votes = np.mean([np.eye(3)[member.predict(BLURRED)] for member in model.estimators_], axis=0)
    model.set_params(voting="hard")
    np.testing.assert_allclose(model.predict_proba(BLURRED), votes)
    np.testing.assert_array_equal(model.predict(BLURRED), votes.argmax(axis=1))
    assert (shares.argmax(axis=1) != votes.argmax(axis=1)).any()


def test_a_tied_vote_goes_to_the_first_class():
    X, y = np.zeros((8, 1)), ["b", "a"] * 4
    seen = set()
    for seed in range(40):
        model = spinney.BaggingClassifier(FixedLabel(), 4, random_state=seed).fit(X, y)
        proba = model.predict_proba(X[:1])[0, 0]
        seen.add(proba)
        assert model.predict(X[:1])[0] == ("a" if proba >= 0.5 else "b")
    assert {0.25, 0.5, 0.75} <= seen


def test_members_without_a_class_count_as_zero_for_it():
    X = np.arange(30.0)[:, None]
    y = np.array(["a"] * 14 + ["b"] * 15 + ["c"])
    model = spinney.BaggingClassifier(KNeighborsClassifier(1), 20, random_state=0).fit(X, y)
    with_c = np.mean([29 in rows for rows in model.estimators_samples_])
    assert 0 < with_c < 1
    assert model.predict_proba([[29.0]])[0].tolist() == pytest.approx([0, 1 - with_c, with_c])


def test_labels_are_kept_for_members():
    model = spinney.BaggingClassifier(None, 3, random_state=0).fit(IRIS, np.array(["x", "y", "z"])[SPECIES])
    assert model.estimators_[0].classes_.tolist() == ["x", "y", "z"]
    cost = {"x": {"y": 5}}
    spinney.BaggingClassifier(spinney.DecisionTreeClassifier(cost_matrix=cost), 2).fit(
        IRIS, np.array(list("xyz"))[SPECIES]
    )


def test_staged_predictions_end_at_the_prediction():
    model = spinney.BaggingClassifier(None, 5, random_state=0).fit(BLURRED, SPECIES)
    stages = list(model.staged_predict_proba(BLURRED))
    assert len(stages) == 5
    np.testing.assert_allclose(stages[0], model.estimators_[0].predict_proba(BLURRED))
    np.testing.assert_array_equal(stages[-1], model.predict_proba(BLURRED))
    np.testing.assert_array_equal(list(model.staged_predict(BLURRED))[-1], model.predict(BLURRED))
    values = spinney.BaggingRegressor(None, 5, random_state=0).fit(DIABETES, PROGRESS)
    np.testing.assert_array_equal(list(values.staged_predict(DIABETES))[-1], values.predict(DIABETES))


def test_several_outputs_of_a_regression():
    y = np.column_stack([PROGRESS, -2 * PROGRESS])
    model = spinney.BaggingRegressor(None, 20, oob_score=True, random_state=0).fit(DIABETES, y)
    assert model.predict(DIABETES).shape == (442, 2)
    np.testing.assert_allclose(model.predict(DIABETES)[:, 1], -2 * model.predict(DIABETES)[:, 0])
    assert model.oob_prediction_.shape == (442, 2)


def test_importances_are_averaged_over_the_columns_that_members_have():
    model = spinney.BaggingRegressor(None, 8, max_features=4, bootstrap_features=True, random_state=0)
    model.fit(DIABETES, PROGRESS)
    by_hand = np.zeros(10)
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        for column, value in zip(columns, member.feature_importances_, strict=True):
            by_hand[column] += value / 8
    np.testing.assert_allclose(model.feature_importances_, by_hand)
    assert not hasattr(spinney.BaggingRegressor(Ridge(), 2).fit(DIABETES, PROGRESS), "feature_importances_")


# ---- out of bag ------------------------------------------------------------------------------------------------------


def out_of_bag_by_hand(model, X, n_members):
    """Mean of the first members over their out-of-bag rows, one row at a time."""
    samples = [set(rows.tolist()) for rows in model.estimators_samples_[:n_members]]
    found = []
    for row in range(len(X)):
        predicted = [
            model.estimators_[k].predict(X[[row]][:, model.estimators_features_[k]])[0]
            for k in range(n_members)
            if row not in samples[k]
        ]
        found.append(np.mean(predicted) if predicted else np.nan)
    return np.array(found)


def test_the_curve_out_of_bag_by_hand():
    X, y = DIABETES[:80], PROGRESS[:80]
    model = spinney.BaggingRegressor(None, 12, max_features=4, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        model.fit(X, y)
    for n in (1, 3, 12):
        mean = out_of_bag_by_hand(model, X, n)
        assert model.oob_errors()[n - 1] == pytest.approx(np.nanmean((y - mean) ** 2))
        rows = ~np.isnan(mean)
        curve = model.oob_errors(X, y, metric=mean_absolute_error)
        assert curve[n - 1] == pytest.approx(mean_absolute_error(y[rows], mean[rows]))
    np.testing.assert_allclose(model.oob_prediction_, out_of_bag_by_hand(model, X, 12))
    np.testing.assert_allclose(model.oob_errors(X, y), model.oob_errors())


def test_any_metric_out_of_bag():
    settings = {"n_estimators": 30, "random_state": 0}
    model = spinney.BaggingClassifier(None, oob_score="neg_log_loss", max_samples=0.5, **settings).fit(BLURRED, SPECIES)
    shares = model.oob_decision_function_
    assert model.oob_score_ == pytest.approx(-log_loss(SPECIES, shares))
    model.set_params(oob_score=lambda actual, predicted: 100 * np.mean(actual == predicted)).fit(BLURRED, SPECIES)
    assert model.oob_score_ == pytest.approx(100 * np.mean(model.oob_decision_function_.argmax(axis=1) == SPECIES))
    assert model.oob_errors()[-1] == pytest.approx(1 - model.oob_score_ / 100)
    values = spinney.BaggingRegressor(None, oob_score="neg_mean_absolute_error", **settings).fit(DIABETES, PROGRESS)
    assert values.oob_score_ == pytest.approx(-mean_absolute_error(PROGRESS, values.oob_prediction_))


def test_weights_count_in_the_score_out_of_bag():
    weight = np.where(SPECIES == 1, 5.0, 1.0)
    model = spinney.BaggingClassifier(None, 60, oob_score=True, random_state=0).fit(BLURRED, SPECIES, weight)
    is_right = model.oob_decision_function_.argmax(axis=1) == SPECIES
    assert model.oob_score_ == pytest.approx(np.average(is_right, weights=weight))
    assert model.oob_errors()[-1] == pytest.approx(1 - model.oob_score_)


def test_subsamples_without_replacement_leave_rows_out_too():
    model = spinney.BaggingClassifier(None, 40, bootstrap=False, max_samples=0.6, oob_score=True, random_state=0)
    assert 0.6 < model.fit(BLURRED, SPECIES).oob_score_ < 1
    with pytest.raises(ValueError, match="needs rows that are left out"):
        model.set_params(max_samples=None).fit(BLURRED, SPECIES)


# ---- any table -------------------------------------------------------------------------------------------------------


def tables():
    frame = pd.DataFrame(BLURRED, columns=["a", "b", "c", "d"])
    return {
        "pandas": frame,
        "polars": pl.DataFrame(frame.to_dict("list")),
        "arrow": pa.table(frame.to_dict("list")),
        "dict": frame.to_dict("list"),
        "list": BLURRED.tolist(),
        "csr": sp.csr_array(BLURRED),
        "coo": sp.coo_array(BLURRED),
    }


@pytest.mark.parametrize(
    *covering(kind=list(tables()), settings=[*SETTINGS, {"bootstrap_features": True, "max_samples": 20}])
)
def test_every_table_gives_the_same_model(kind, settings):
    table = tables()[kind]
    expected = spinney.BaggingClassifier(None, 4, random_state=0, **settings).fit(BLURRED, SPECIES)
    model = spinney.BaggingClassifier(None, 4, random_state=0, **settings).fit(table, SPECIES)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(BLURRED))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_members_get_tables_of_the_same_kind(kind):
    table = tables()[kind]
    model = spinney.BaggingClassifier(Recorder(), 2, max_samples=10, max_features=2).fit(table, SPECIES)
    assert type(model.estimators_[0].X_) is type(table)
    assert model.estimators_[0].X_.shape == (10, 2)


def test_a_pipeline_on_a_frame_with_strings_and_gaps():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["island"]), (StandardScaler(), ["year"])
    )
    model = spinney.BaggingClassifier(make_pipeline(columns, LogisticRegression()), 5, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    trees = spinney.BaggingClassifier(None, 20, oob_score=True, random_state=0).fit(X, y)
    assert trees.oob_score_ > 0.95
    assert trees.predict(X[X.columns[::-1]]).tolist() == trees.predict(X).tolist()  # columns are matched by name
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        trees.predict(X.drop(columns="year"))


# ---- threads, warm start, keeping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [None, KNeighborsClassifier(1), spinney.ExtraTreeClassifier(max_features=2)])
def test_the_ensemble_is_the_same_for_any_number_of_threads(member):
    one = spinney.BaggingClassifier(member, 9, oob_score=True, max_samples=0.3, n_jobs=1, random_state=0)
    one.fit(BLURRED, SPECIES)
    for n_jobs in (2, 7, None):
        other = clone(one).set_params(n_jobs=n_jobs).fit(BLURRED, SPECIES)
        np.testing.assert_array_equal(one.predict_proba(BLURRED), other.predict_proba(BLURRED))
        np.testing.assert_array_equal(one.oob_decision_function_, other.oob_decision_function_)
        np.testing.assert_array_equal(one.oob_errors(), other.oob_errors())


def test_threads_are_used():
    class Meets(Recorder):
        barrier = threading.Barrier(2, timeout=60)

        def fit(self, X, y):
            self.barrier.wait()
            return super().fit(X, y)

        def __sklearn_clone__(self):
            return type(self)()

    model = spinney.BaggingClassifier(Meets(), 2, n_jobs=2).fit(BLURRED, SPECIES)
    assert len({member.thread_ for member in model.estimators_}) == 2


@pytest.mark.parametrize("random_state", [3, np.random.RandomState(3)])
def test_a_warm_start_adds_members(random_state):
    whole = spinney.BaggingClassifier(None, 9, random_state=3).fit(BLURRED, SPECIES)
    model = spinney.BaggingClassifier(None, 4, warm_start=True, oob_score=False, random_state=random_state)
    first = model.fit(BLURRED, SPECIES).estimators_[0]
    model.set_params(n_estimators=9).fit(BLURRED, SPECIES)
    assert model.estimators_[0] is first
    np.testing.assert_array_equal(model.predict_proba(BLURRED), whole.predict_proba(BLURRED))
    for ours, expected in zip(model.estimators_samples_, whole.estimators_samples_, strict=True):
        np.testing.assert_array_equal(ours, expected)
    with pytest.warns(UserWarning, match="does not fit new members"):
        model.fit(BLURRED, SPECIES)
    with pytest.raises(ValueError, match="n_estimators=2 must be larger or equal"):
        model.set_params(n_estimators=2).fit(BLURRED, SPECIES)
    with pytest.raises(ValueError, match="continues a fit to 150 rows and 4 columns; X has 140 and 4"):
        model.set_params(n_estimators=12).fit(BLURRED[:140], SPECIES[:140])


def test_a_pickle_predicts_the_same():
    model = spinney.BaggingClassifier(None, 3, oob_score=False, random_state=0).fit(BLURRED, SPECIES)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(BLURRED), model.predict_proba(BLURRED))
    np.testing.assert_array_equal(other.estimators_samples_[2], model.estimators_samples_[2])


def test_a_failed_fit_leaves_the_old_one():
    model = spinney.BaggingClassifier(SVC(), 3, random_state=0).fit(BLURRED, SPECIES)
    before = model.predict(BLURRED)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((150, 4), np.nan), SPECIES)
    np.testing.assert_array_equal(model.predict(BLURRED), before)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, spinney
from sklearn.base import BaseEstimator, ClassifierMixin

class Sleeper(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        time.sleep(20)
        return self
    def predict(self, X):
        return np.zeros(len(X))

def interrupt():
    global sent
    sent = time.process_time(), time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

for member, n_members, n_rows in ((None, 1_000_000, 2000), (None, 8, 60_000), (Sleeper(), 8, 100)):
    X, y = np.random.default_rng(0).normal(size=(n_rows, 20)), np.random.default_rng(1).permutation(n_rows) % 3
    model = spinney.BaggingClassifier(member, n_members, n_jobs=2)
    timer = threading.Timer(0.3, interrupt)
    try:
        timer.start()
        model.fit(X, y)
    except KeyboardInterrupt:
        worked, passed = time.process_time() - sent[0], time.monotonic() - sent[1]
        timer.join()
        print(worked, passed, hasattr(model, "estimators_"), threading.active_count(), flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_fit_of_many_or_long_members_within_a_second():
    worked, passed, is_fitted, n_threads = zip(*map(str.split, run(INTERRUPTED).stdout.splitlines()), strict=True)
    assert max(map(float, worked)) < 2  # a second of each of two threads, whatever else the machine does
    assert max(map(float, passed)) < 15  # a member sleeps for longer
    assert is_fitted == ("False",) * 3
    assert n_threads == ("1", "1", "3")  # trees stop; what cannot be stopped is left to end


def test_progress_is_reported(capsys):
    spinney.BaggingClassifier(None, 20, verbose=1).fit(BLURRED, SPECIES)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("20 of 20 members, ")


# ---- what it is for --------------------------------------------------------------------------------------------------


def test_bagging_improves_the_nearest_neighbour():
    """With noisy labels the error of 1-NN is about twice the noise; bagged with small samples it is near the noise."""
    alone, bagged = [], []
    for seed in range(6):
        X, y = make_classification(600, 5, n_redundant=0, flip_y=0.3, class_sep=1.5, random_state=seed)
        single = KNeighborsClassifier(1).fit(X[:300], y[:300])
        many = spinney.BaggingClassifier(single, 20, max_samples=0.1, random_state=seed).fit(X[:300], y[:300])
        alone.append(1 - single.score(X[300:], y[300:]))
        bagged.append(1 - many.score(X[300:], y[300:]))
    gain = np.array(alone) - bagged
    assert gain.mean() > 0.04
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(len(gain))


# ---- errors in words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"voting": "soft"}, "SVC has no predict_proba. Use voting='hard'"),
        ({"max_features": 7}, "max_features=7 must be <= n_features: the table has 4 columns"),
        ({"bootstrap": False, "max_samples": 151}, "max_samples=151 must be <= n_samples=150"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"bootstrap": False, "stratified": "balanced", "max_samples": 150}, None),
        ({"stratified": "equal"}, "stratified"),
        ({"oob_score": "nonsense"}, "nonsense"),
    ],
)
def test_wrong_parameters(settings, message):
    model = spinney.BaggingClassifier(SVC(), 3, random_state=0, **settings)
    if message is None:
        assert len(model.fit(BLURRED, SPECIES).estimators_samples_[0]) == 150
        return
    with pytest.raises(ValueError, match=message):
        model.fit(BLURRED, SPECIES)


def test_invalid_arguments_are_refused():
    model = spinney.BaggingClassifier(KNeighborsClassifier(1), 3, bootstrap=False)
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        model.fit(IRIS, SPECIES, np.ones(150))
    with pytest.raises(ValueError, match="groups has shape"):
        model.fit(IRIS, SPECIES, groups=[1, 2])
    with pytest.raises(ValueError, match="strata has shape"):
        model.fit(IRIS, SPECIES, strata=[1, 2])
    with pytest.raises(ValueError, match="Pass one of them"):
        spinney.BaggingClassifier(stratified=True).fit(IRIS, SPECIES, strata=SPECIES)
    with pytest.raises(ValueError, match="Balanced samples would need"):
        spinney.BaggingClassifier(stratified="balanced", bootstrap=False, max_samples=8).fit([[0]] * 9, [0] * 8 + [1])
    with pytest.raises(TypeError, match="Did you mean 'n_estimators'"):
        spinney.BaggingClassifier(n_estimator=3)
    fitted = spinney.BaggingClassifier(n_estimators=2).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="Pass the X and y that were passed to fit"):
        fitted.oob_errors()
    with pytest.raises(ValueError, match="fitted to 150 rows and X has 10"):
        fitted.oob_errors(IRIS[:10], SPECIES[:10])


def test_a_failing_member_is_named():
    X, y = np.arange(20.0)[:, None], np.array([0] * 19 + [1])
    with pytest.raises(ValueError, match="class") as caught:
        spinney.BaggingClassifier(SVC(), 30, random_state=0).fit(X, y)
    (note,) = caught.value.__notes__
    assert "whose sample has 1 of the 2 classes; stratified=True" in note
    spinney.BaggingClassifier(SVC(), 30, stratified=True, random_state=0).fit(X, y)


class Constant(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.value_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


def test_the_least_an_estimator_needs():
    model = spinney.BaggingRegressor(Constant(), 4, random_state=0).fit(DIABETES, PROGRESS)
    means = [PROGRESS[rows].mean() for rows in model.estimators_samples_]
    assert model.predict(DIABETES)[0] == pytest.approx(np.mean(means))
