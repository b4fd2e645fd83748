"""Rounds: early stopping, staged predictions, warm start, callbacks, progress, interruption."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
import spinney._engine as _engine
from oracle.boosting_rounds import rounds_until_settled
from processes import run
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, check_scoring, log_loss, mean_absolute_error
from sklearn.model_selection import train_test_split


def noisy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + rng.normal(size=n)


def stopping(**parameters):
    given = {"n_estimators": 200, "early_stopping": True, "n_iter_no_change": 5, "learning_rate": 0.3}
    return spinney.GradientBoostingRegressor(**(given | {"random_state": 0, "min_samples_leaf": 5} | parameters))


def test_it_stops_when_held_out_rows_no_longer_improve():
    X, y = noisy()
    model = stopping().fit(X, y)
    curve = model.validation_score_
    assert len(curve) == len(model.train_score_) < 200
    assert model.n_iter_ == model.n_estimators_ == curve.argmin() + 1 == len(curve) - 5
    assert len(stopping(keep_best=False).fit(X, y).boosting_.trees()) == len(curve)


def test_a_number_of_rounds_to_wait_is_enough_to_stop_early():
    X, y = noisy()
    asked = stopping().fit(X, y)
    for automatic in (None, "auto"):
        implied = stopping(early_stopping=automatic).fit(X, y)
        assert implied.fingerprint() == asked.fingerprint()
        assert len(implied.validation_score_) == len(asked.validation_score_) < 200
    for given in ({"early_stopping": False}, {"early_stopping": "auto", "n_iter_no_change": None}):
        whole = stopping(n_estimators=20, **given).fit(X, y)
        assert whole.n_iter_ == 20
        assert not hasattr(whole, "validation_score_")
    patient = stopping(n_iter_no_change=None).fit(X, y)
    assert len(patient.validation_score_) - patient.n_iter_ == 10


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "the held-out loss has not improved for 5 rounds"),
        ({"scoring": "r2"}, "the held-out score has not improved for 5 rounds"),
        ({"n_estimators": 3}, "all 3 rounds are done"),
        ({"callbacks": lambda progress: progress["round"] == 2}, "a callback stopped the fit"),
    ],
)
def test_a_model_has_its_stopping_reason(parameters, words, capsys, tmp_path):
    X, y = noisy()
    model = stopping(verbose=1, **parameters).fit(X, y)
    assert model.stopped_because_ == words
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"stopped after round {len(model.train_score_)}: {words}")
    assert ("are kept" in last) == (model.n_iter_ < len(model.train_score_))
    model.set_params(callbacks=None).save(tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    assert again.stopped_because_ == words
    assert words in again._about().sentence


@pytest.mark.parametrize("n", [2, 5, 10, 25, 39, 40])
def test_few_rows_are_learned_from_too(n):
    X = np.arange(n, dtype=float)[:, np.newaxis]
    y = (X[:, 0] >= n // 2).astype(float)
    for kind in (spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier):
        model = kind(n_estimators=100)
        found = model.fit(X, y).predict(X)
        np.testing.assert_allclose(found, y, atol=0.05)


@pytest.mark.parametrize(
    ("n", "subsample", "leaf"),
    [(800, 1.0, 20), (800, 0.5, 10), (50, 1.0, 10), (50, 0.5, 5), (12, 1.0, 2)],
)
def test_leaves_of_small_tables_follow_the_rows_of_a_round(n, subsample, leaf):
    X, y = noisy(n)
    given = {"n_estimators": 5, "subsample": subsample, "random_state": 0}
    auto, same = (
        spinney.GradientBoostingRegressor(**given, **more).fit(X, y) for more in ({}, {"min_samples_leaf": leaf})
    )
    assert auto.fingerprint() == same.fingerprint()
    assert max(len(tree.n_rows) for tree in auto.boosting_.trees()) > 1


def test_fifty_rows_half_of_them_in_a_round_suffice():
    X, y = load_iris(return_X_y=True)
    accuracy = []
    for seed in range(3):
        rows, rest = train_test_split(np.arange(len(y)), train_size=50, random_state=seed, stratify=y)
        model = spinney.GradientBoostingClassifier(n_estimators=50, learning_rate=0.2, subsample=0.5, random_state=0)
        accuracy.append(model.fit(X[rows], y[rows]).score(X[rest], y[rest]))
    assert np.mean(accuracy) > 0.9


def test_leaves_too_large_for_the_table_are_warned_of():
    X, y = noisy(30)
    with pytest.warns(UserWarning, match="min_samples_leaf=20 allows no split of 30 rows"):
        spinney.GradientBoostingRegressor(min_samples_leaf=20, n_estimators=2).fit(X, y)


def test_held_out_rows_are_not_learned_from():
    X, y = noisy()
    learned = {int(tree.n_rows[0]) for tree in stopping(validation_fraction=0.25).fit(X, y).boosting_.trees()}
    assert learned == {225}
    assert {int(t.n_rows[0]) for t in stopping(validation_fraction=30).fit(X, y).boosting_.trees()} == {270}


def test_given_rows_are_held_out():
    X, y = noisy()
    model = stopping().fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    plain = spinney.GradientBoostingRegressor(
        n_estimators=model.n_iter_, learning_rate=0.3, min_samples_leaf=5, random_state=0
    ).fit(X[:200], y[:200])
    assert plain.fingerprint() == model.fingerprint()
    for staged, loss in zip(model.staged_predict(X[200:]), model.validation_score_, strict=False):
        assert np.mean((staged - y[200:]) ** 2) == pytest.approx(loss, rel=1e-9)
    watched = clone(plain).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])  # a curve, and no stopping
    np.testing.assert_array_equal(watched.validation_score_, model.validation_score_[: model.n_iter_])


def test_weights_of_held_out_rows_count():
    X, y = noisy()
    weight = np.arange(100.0)
    model = stopping().fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], sample_weight_val=weight)
    last = list(model.staged_predict(X[200:]))[-1]
    assert np.average((last - y[200:]) ** 2, weights=weight) == pytest.approx(
        model.validation_score_[model.n_iter_ - 1]
    )


def test_groups_are_held_out_together():
    X, y = noisy()
    groups = np.repeat(np.arange(30), 10)
    y = y + 5 * (groups % 7)
    model = stopping(validation_fraction=0.2).fit(X, y, groups=groups)
    assert {int(tree.n_rows[0]) for tree in model.boosting_.trees()} == {240}
    with pytest.raises(ValueError, match="groups has shape"):
        stopping().fit(X, y, groups=groups[1:])
    with pytest.raises(ValueError, match="or no validation rows"):
        stopping().fit(X, y, groups=np.zeros(300))


def test_classes_keep_their_shares():
    X, y = noisy()
    labels = np.where(y > 1.5, "rare", "common")
    labels[0] = "single"
    model = spinney.GradientBoostingClassifier(
        n_estimators=3, early_stopping=True, validation_fraction=0.3, random_state=0
    ).fit(X, labels)
    assert len(model.classes_) == 3
    assert np.isfinite(model.boosting_.start).all()


def test_small_classes_still_leave_a_validation_row():
    X, _ = noisy(12)
    model = spinney.GradientBoostingClassifier(n_estimators=3, early_stopping=True, random_state=0)
    assert len(model.fit(X, np.arange(12) % 4).validation_score_) == 3


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "r2", "callable"])
def test_any_metric_may_stop_it(scoring):
    X, y = noisy()

    def scorer(estimator, X, y):
        return -mean_absolute_error(y, estimator.predict(X))

    model = stopping(scoring=scorer if scoring == "callable" else scoring)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    if scoring != "r2":
        best = list(model.staged_predict(X[200:]))[-1]
        assert model.validation_score_.min() == pytest.approx(mean_absolute_error(y[200:], best))


def test_metrics_of_classes_see_labels_and_shares():
    X, y = noisy()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    for scoring, wanted in (("accuracy", accuracy_score), ("neg_log_loss", None), ("roc_auc_ovr", None)):
        model = spinney.GradientBoostingClassifier(n_estimators=8, early_stopping=True, scoring=scoring, random_state=0)
        model.fit(X[:200], labels[:200], X_val=X[200:], y_val=labels[200:])
        assert len(model.validation_score_) >= model.n_iter_
        if wanted is not None:
            assert -model.validation_score_[model.n_iter_ - 1] == wanted(labels[200:], model.predict(X[200:]))
        if scoring == "neg_log_loss":
            loss = log_loss(labels[200:], model.predict_proba(X[200:]))
            assert model.validation_score_[model.n_iter_ - 1] == pytest.approx(loss)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("own_rows", [False, True])
def test_a_metric_of_the_users_sees_the_rows_as_they_were_given(kind, own_rows):
    X, y = noisy()
    table, seen = kind(X), []

    def score(estimator, rows, target):
        assert type(rows) is type(table)
        seen.append((np.asarray(rows), target))
        half = rows[: len(target) // 2]
        np.testing.assert_allclose(estimator.predict(half), estimator.predict(rows)[: len(target) // 2], rtol=1e-12)
        return -mean_absolute_error(target, estimator.predict(rows))

    own = {"X_val": kind(X[:50]), "y_val": y[:50]} if own_rows else {}
    model = stopping(scoring=score, n_estimators=5).fit(table, y, **own)
    assert len(model.validation_score_) == len(seen)
    for rows, target in seen:
        places = [np.flatnonzero((row == X).all(axis=1))[0] for row in rows]
        np.testing.assert_array_equal(y[places], target)
    by_name = stopping(scoring="neg_mean_absolute_error", n_estimators=5).fit(table, y, **own)
    np.testing.assert_array_equal(model.validation_score_, by_name.validation_score_)


def test_a_metric_that_predicts_other_rows_is_refused_with_an_offset():
    X, y = noisy()
    with pytest.raises(ValueError, match="their offset is not known"):
        stopping(scoring=lambda m, X, y: m.predict(X[:2]).mean()).fit(X, y, offset=np.ones(len(y)))


def test_a_metric_that_is_no_number_is_refused():
    X, y = noisy()
    with pytest.raises(ValueError, match="gives nan after round 1"):
        stopping(scoring=lambda estimator, X, y: np.nan).fit(X, y)


# ---- stages and warm start --------------------------------------------------------------------------------


def test_stages_end_at_the_prediction():
    X, y = noisy()
    model = spinney.GradientBoostingRegressor(n_estimators=7).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == 7
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    labels = np.digitize(y, [0, 1])
    for codes in (labels, labels > 0):
        model = spinney.GradientBoostingClassifier(n_estimators=4).fit(X, codes)
        np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
        np.testing.assert_array_equal(list(model.staged_predict_proba(X))[-1], model.predict_proba(X))
        np.testing.assert_array_equal(list(model.staged_decision_function(X))[-1], model.decision_function(X))


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_warm_start_is_one_long_fit(n_classes):
    X, y = noisy()
    X[::7, 1] = np.nan
    kind = spinney.GradientBoostingClassifier if n_classes else spinney.GradientBoostingRegressor
    if n_classes:
        y = np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    rules = {"subsample": 0.7, "max_features": 2, "random_state": 3}
    long = kind(n_estimators=12, **rules).fit(X, y)
    warm = kind(n_estimators=5, warm_start=True, **rules).fit(X, y)
    warm.set_params(n_estimators=12).fit(X, y)
    assert warm.fingerprint() == long.fingerprint()
    np.testing.assert_array_equal(warm.train_score_, long.train_score_)
    with pytest.warns(UserWarning, match="without increasing n_estimators"):
        warm.fit(X, y)
    with pytest.raises(ValueError, match="at least the 12 rounds"):
        warm.set_params(n_estimators=3).fit(X, y)


def test_a_warm_start_after_early_stopping_goes_on_from_the_best_round():
    X, y = noisy()
    model = stopping(warm_start=True).fit(X, y)
    best = model.n_iter_
    assert len(model.train_score_) > best
    model.set_params(n_estimators=best + 2, early_stopping=False).fit(X, y)
    assert model.n_iter_ == len(model.train_score_) == best + 2
    assert not hasattr(model, "validation_score_")


def test_a_warm_start_needs_the_same_target():
    X, y = noisy()
    model = spinney.GradientBoostingClassifier(n_estimators=2, warm_start=True).fit(X, y > 0)
    with pytest.raises(ValueError, match="classes and outputs of the earlier fit"):
        model.fit(X, np.digitize(y, [0, 1]))
    with pytest.raises(ValueError, match="loss of the earlier fit"):
        model.set_params(loss="exponential").fit(X, y > 0)


def test_a_warm_start_keeps_the_kinds_of_the_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 80), rng.normal(size=80)])
    model = spinney.GradientBoostingRegressor(n_estimators=2, warm_start=True).fit(X, X[:, 1])
    with pytest.raises(ValueError, match="column 'x0' was not a category at the earlier fit"):
        model.set_params(n_estimators=4, categorical_features=[0]).fit(X, X[:, 1])
    model.set_params(warm_start=False).fit(X, X[:, 1])
    model.set_params(n_estimators=6, warm_start=True).fit(X, X[:, 1])
    assert model.n_iter_ == 6


# ---- callbacks, progress, interruption --------------------------------------------------------------------


def test_callbacks_see_each_round_and_may_stop_it():
    X, y = noisy()
    seen = []
    model = spinney.GradientBoostingRegressor(
        n_estimators=9, callbacks=[seen.append, lambda about: about["round"] == 4]
    )
    model.fit(X, y)
    assert model.n_iter_ == 4
    assert [about["round"] for about in seen] == [1, 2, 3, 4]
    assert [about["train_loss"] for about in seen] == model.train_score_.tolist()
    assert seen[0]["validation_loss"] is None
    assert seen[0]["n_estimators"] == 9
    assert seen[-1]["seconds"] >= seen[0]["seconds"] > 0


def test_it_is_silent_unless_asked(capfd):
    X, y = noisy()
    spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y)
    assert capfd.readouterr() == ("", "")
    spinney.GradientBoostingRegressor(n_estimators=3, verbose=1).fit(X, y, X_val=X, y_val=y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "round 3 of 3, loss" in err
    assert "held out" in err
    assert "s left" in err


def interrupt_at(round_):
    def callback(about):
        if about["round"] == round_:
            raise KeyboardInterrupt

    return callback


def test_an_interruption_leaves_nothing_half_fitted():
    X, y = noisy()
    model = spinney.GradientBoostingRegressor(n_estimators=9, callbacks=interrupt_at(3))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_an_interruption_may_keep_the_rounds_done():
    X, y = noisy()
    model = spinney.GradientBoostingRegressor(
        n_estimators=9, callbacks=interrupt_at(3), keep_interrupted=True, random_state=0
    )
    with pytest.warns(UserWarning, match="interrupted after 3 of 9 rounds; these are kept"):
        model.fit(X, y)
    plain = spinney.GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y)
    assert model.fingerprint() == plain.fingerprint()
    assert len(model.train_score_) == model.n_iter_ == 3
    model.set_params(warm_start=True, callbacks=None).fit(X, y)
    assert (
        model.fingerprint() == spinney.GradientBoostingRegressor(n_estimators=9, random_state=0).fit(X, y).fingerprint()
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": "auto", "effort": 0.1},
        {"n_estimators": 80, "n_iter_no_change": 4, "subsample": 0.5},
        {"n_estimators": 12, "dart": 0.3},
    ],
)
def test_rounds_that_nobody_looks_at_are_the_same(parameters):
    X, y = noisy(60)
    alone, seen = (
        spinney.GradientBoostingRegressor(callbacks=callback, random_state=0, **parameters).fit(X, y)
        for callback in (None, lambda progress: False)
    )
    assert alone.fingerprint() == seen.fingerprint()
    assert alone.n_iter_ == seen.n_iter_
    for curve in ("train_score_", "validation_score_", "oob_scores_"):
        np.testing.assert_array_equal(getattr(alone, curve, []), getattr(seen, curve, []))


def test_early_stopping_like_the_reference():
    rng = np.random.default_rng(0)
    for case in range(60):
        losses = (1 / np.arange(1, 61) ** rng.uniform(0, 1) + rng.normal(0, 0.02, 60)).tolist()
        rule = (int(rng.integers(1, 12)), float(rng.choice([0, 0.003])), float(rng.choice([0, 0.01])), bool(case % 2))
        early_stopping = _engine.EarlyStopping(*rule)
        found = None
        for n, loss in enumerate(losses, start=1):
            early_stopping.add(loss)
            assert early_stopping.is_best == (n == 1 or loss < min(losses[: n - 1]))
            if found is None and early_stopping.is_stopped:
                found = n
        assert found == rounds_until_settled(losses, *rule)


def test_a_signal_in_the_midst_of_many_rounds_keeps_them_with_their_losses():
    X, y = noisy()
    model = spinney.GradientBoostingRegressor(n_estimators=100_000, keep_interrupted=True, n_jobs=1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.warns(UserWarning, match="these are kept"):
        model.fit(X, y)
    signal.signal(signal.SIGINT, before)
    assert 1 < model.n_iter_ == len(model.train_score_) == len(model.boosting_.trees()) < 100_000


def test_a_signal_ends_a_long_fit_within_a_second():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 10))
    model = spinney.GradientBoostingRegressor(n_estimators=100_000, n_jobs=1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs behind
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0])
    signal.signal(signal.SIGINT, before)
    assert time.process_time() - began < 3  # half a second, one more, and the same again; all rounds take minutes
    assert not hasattr(model, "boosting_")


@pytest.mark.slow
def test_a_fit_in_a_forked_process_is_the_same():  # of spawned ones: the test of instruction sets
    code = "import numpy as np, spinney; X = np.arange(200.0).reshape(50, 4); "
    code += "print(spinney.GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0]).fingerprint())"
    X = np.arange(200.0).reshape(50, 4)
    here = spinney.GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0]).fingerprint()
    assert run(code).stdout.strip() == here


@pytest.mark.parametrize("kind", [spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier])
def test_a_held_out_target_is_called_by_its_name(kind):
    X, y = np.arange(60.0).reshape(-1, 1), np.arange(60) % 2
    gaps = np.where(np.arange(60) == 7, np.nan, y)
    with pytest.raises(ValueError, match=r"^y_val contains NaN: 1 missing value\(s\), the first in row 7"):
        kind(n_estimators=2, early_stopping=True).fit(X, y, X_val=X, y_val=gaps)


@pytest.mark.parametrize(
    ("kind", "scoring"), [(spinney.GradientBoostingRegressor, "r2"), (spinney.GradientBoostingClassifier, "accuracy")]
)
def test_the_scorer_of_an_estimator_itself_can_stop_the_fit(kind, scoring):
    X, y = noisy()
    target = y if scoring == "r2" else y > np.median(y)
    model = kind(n_estimators=5, early_stopping=True, random_state=0)
    by_name = kind(n_estimators=5, early_stopping=True, random_state=0, scoring=scoring).fit(X, target)
    model.set_params(scoring=check_scoring(model)).fit(X, target)
    assert np.array_equal(model.validation_score_, by_name.validation_score_)


def test_attributes_of_histogram_gradient_boosting():
    X, y = noisy()
    codes = np.column_stack([np.arange(len(y)) % 3, X])
    numbers = spinney.GradientBoostingRegressor(n_estimators=2, categorical_features="from_dtype").fit(codes, y)
    assert numbers.is_categorical_ is None
    assert numbers.n_trees_per_iteration_ == 1
    model = spinney.GradientBoostingClassifier(n_estimators=2, categorical_features=[0]).fit(codes, codes[:, 0])
    assert model.is_categorical_.tolist() == [True] + [False] * X.shape[1]
    assert model.n_trees_per_iteration_ == 3
