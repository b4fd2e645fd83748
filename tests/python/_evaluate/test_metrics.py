"""Metrics by name, with any labels."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import polars as pl
import pytest
import spinney
from click.testing import CliRunner
from sklearn import metrics
from sklearn.linear_model import LogisticRegression
from spinney._estimator.metrics import lift
from spinney._evaluate.problem import Problem
from spinney._evaluate.scoring import Scorers, StoredPredictions
from spinney.cli.commands import spinney as command

RANDOM = np.random.default_rng(0)
N = 300
SCORE = RANDOM.random(N)
IS_RARE = RANDOM.random(N) < 0.4 * SCORE
PROBA = np.column_stack([1 - SCORE, SCORE])
ROWS = np.arange(N)[:, np.newaxis]


def problem(y):
    classes, codes = np.unique(y, return_inverse=True)
    return Problem(None, y, codes, classes)


def score(name, y, predictions, positive=None):
    made = problem(y) if y.dtype.kind in "UOib" else Problem(None, y)
    scorers = Scorers.of(name, made, positive)
    (key,) = scorers.metrics
    return scorers.score(key, predictions, y)


EXPECTED = {
    "f1": lambda y, p: metrics.f1_score(y, p > 0.5),
    "precision": lambda y, p: metrics.precision_score(y, p > 0.5),
    "recall": lambda y, p: metrics.recall_score(y, p > 0.5),
    "average precision": metrics.average_precision_score,
    "brier": lambda y, p: -metrics.brier_score_loss(y, p),
    "log_loss": lambda y, p: -metrics.log_loss(y, p),
    "AUC": metrics.roc_auc_score,
    "balanced_accuracy": lambda y, p: metrics.balanced_accuracy_score(y, p > 0.5),
    "mcc": lambda y, p: metrics.matthews_corrcoef(y, p > 0.5),
    "lift": lift,
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("labels", [("common", "rare"), ("no", "a"), (0, 1), (False, True), (7, 3)])
def test_metrics_of_two_classes_take_any_labels(name, labels):
    y = np.where(IS_RARE, *reversed(labels))
    predictions = PROBA if labels[0] < labels[1] else PROBA[:, ::-1]
    assert score(name, y, predictions) == pytest.approx(EXPECTED[name](IS_RARE, SCORE))


@pytest.mark.parametrize("name", ["f1", "precision", "recall", "average_precision", "lift"])
def test_the_positive_class_can_be_chosen(name):
    y = np.where(IS_RARE, "rare", "common")
    expected = EXPECTED[name.replace("_", " ")](~IS_RARE, 1 - SCORE)
    assert score(name, y, PROBA, "common") == pytest.approx(expected)
    assert score(name, y, PROBA, "common") != pytest.approx(score(name, y, PROBA))
    with pytest.raises(ValueError, match=r"no class 'comon'\. Did you mean 'common'"):
        score(name, y, PROBA, "comon")


def test_the_positive_class_is_reported():
    y = np.where(IS_RARE, "rare", "common")
    assert Scorers.of(["f1", "auc"], problem(y)).note == (
        f"Positive class of f1: 'rare', the rarer one, {IS_RARE.mean():.1%} of the rows."
    )
    assert Scorers.of("f1", problem(y), "common").note == "Positive class of f1: 'common', as requested."
    assert "'1', the larger label" in Scorers.of("f1", problem(1 - IS_RARE.astype(int))).note
    assert Scorers.of(None, problem(y)).note == ""


def test_metrics_of_several_classes_are_means_of_the_classes():
    y = np.array(["a", "b", "c"])[RANDOM.integers(0, 3, N)]
    proba = RANDOM.dirichlet([1, 1, 1], N)
    labels = np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    onehot = y[:, np.newaxis] == np.array(["a", "b", "c"])
    assert score("f1", y, proba) == pytest.approx(metrics.f1_score(y, labels, average="macro"))
    assert score("f1", y, proba, "b") == pytest.approx(metrics.f1_score(y, labels, average=None)[1])
    assert score("auc", y, proba) == pytest.approx(metrics.roc_auc_score(y, proba, multi_class="ovr"))
    assert score("average_precision", y, proba) == pytest.approx(metrics.average_precision_score(onehot, proba))
    assert score("brier", y, proba) == pytest.approx(-((proba - onehot) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rmse", lambda y, p: -metrics.root_mean_squared_error(y, p)),
        ("MAE", lambda y, p: -metrics.mean_absolute_error(y, p)),
        ("mape", lambda y, p: -metrics.mean_absolute_percentage_error(y, p)),
        ("R²", metrics.r2_score),
        ("quantile_loss", lambda y, p: -metrics.mean_pinball_loss(y, p)),
        ("quantile_loss_0.9", lambda y, p: -metrics.mean_pinball_loss(y, p, alpha=0.9)),
    ],
)
def test_metrics_of_numbers(name, expected):
    y, predictions = RANDOM.random(N), RANDOM.random((N, 1))
    assert score(name, y, predictions) == pytest.approx(expected(y, predictions[:, 0]))


def test_every_scorer_of_scikit_learn_is_known():
    for name in metrics.get_scorer_names():
        assert list(Scorers.of(name, problem(IS_RARE)).metrics) == [name]


@pytest.mark.parametrize(
    ("name", "meant"), [("f2", "'f1'"), ("roc", "'roc_auc'"), ("rmes", "'rmse'"), ("", "Try 'log_loss'")]
)
def test_an_unknown_name_lists_near_ones(name, meant):
    with pytest.raises(ValueError, match="There is no metric") as error:
        Scorers.of(name, problem(IS_RARE))
    assert meant in str(error.value)


def test_lift_does_not_depend_on_the_order_of_equal_scores():
    is_positive = np.array([True] * 10 + [False] * 90)
    assert lift(is_positive, np.where(is_positive, 0.9, 0.1)) == 10
    assert lift(is_positive, np.zeros(100)) == lift(is_positive[::-1], np.zeros(100)) == 1


def test_a_positive_class_of_numbers_is_refused():
    with pytest.raises(ValueError, match="the target is numeric"):
        Scorers.of("rmse", Problem(None, RANDOM.random(N)), "yes")
    with pytest.raises(ValueError, match="lift"):
        Scorers.of("lift", Problem(None, RANDOM.random(N)))


def test_models_that_get_codes_are_scored_by_the_same_class():
    y = np.where(IS_RARE, "a", "b")  # the rarer class comes first
    found = spinney.compare(
        {"labels": spinney.DecisionTreeClassifier(max_depth=2), "codes": LogisticRegression()},
        SCORE[:, np.newaxis], y, scoring=["f1", "average_precision"], repeats=1, cv=3,
    )  # fmt: skip
    assert "Positive class of f1, average_precision: 'a', the rarer one" in str(found)
    ap = metrics.average_precision_score(IS_RARE, SCORE)
    assert found.mean("codes", "average_precision")[0] == pytest.approx(ap, abs=0.1)


def test_compare_and_study_rank_by_the_same_metric():
    X = {"x": SCORE, "z": RANDOM.random(N)}
    y = np.where(IS_RARE, "rare", "common")
    found = spinney.compare(["tree", "linear"], X, y, repeats=1, cv=2)
    studied = spinney.study(X, y, models=["tree", "linear"], repeats=1, cv=2)
    assert found.metrics == studied.metrics == ["neg_log_loss", "roc_auc", "accuracy"]
    without = spinney.compare(["tree", "perceptron"], X, y, repeats=1, cv=2)
    assert without.metrics[0] == "accuracy"


@pytest.fixture
def loans(tmp_path):
    pl.DataFrame({"score": SCORE, "z": RANDOM.random(N), "repaid": np.where(IS_RARE, "no", "yes")}).write_csv(
        tmp_path / "loans.csv"
    )
    return tmp_path / "loans.csv"


def run(*words, code=0):
    result = CliRunner().invoke(command, list(map(str, words)))
    assert result.exit_code == code, result.output
    return result


def test_the_command_line_takes_metrics_and_the_positive_class(loans, tmp_path):
    few = ("--folds", 2, "--metric", "f1", "--metric", "lift")
    result = run("fit", loans, "--target", "repaid", *few, "--json")
    assert list(json.loads(result.stdout)["scores"]) == ["f1", "lift"]
    assert result.stderr.startswith("Positive class of f1, lift: 'no', the rarer one")
    other = run("fit", loans, "--target", "repaid", *few, "--positive", "yes", "--json")
    assert json.loads(other.stdout)["scores"] != json.loads(result.stdout)["scores"]
    shown = run("compare", loans, "--target", "repaid", *few, "--positive", "yes", "--model", "tree", "--repeats", 1)
    assert "Positive class of f1, lift: 'yes', as requested." in shown.stdout
    out = tmp_path / "out"
    words = ("--model", "tree", "--model", "linear", "--repeats", 1, "--out", out)
    run("study", loans, "--target", "repaid", *few, "--positive", "yes", *words)
    assert "f1, lift: 'yes', as requested" in (out / "report.html").read_text()
    assert "--positive requires" in run("fit", loans, "--target", "repaid", "--positive", "yes", code=1).stderr


def test_stored_predictions_are_scored_like_models():
    y = np.where(IS_RARE, "rare", "common")
    (scorer,) = Scorers.of("f1", problem(y)).metrics.values()
    assert scorer(StoredPredictions(PROBA, np.array(["common", "rare"])), ROWS, y) == pytest.approx(
        metrics.f1_score(IS_RARE, SCORE > 0.5)
    )


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        *product(["log_loss", "accuracy", "auc"], [("no", "yes"), (1, 3)]),
        *product(["log_loss", "accuracy"], [("a", "b", "c")]),
        *product(["rmse", "mse", "mae", "r2"], [None]),
    ],
)
def test_scores_from_losses_of_rows_are_those_of_scikit_learn(name, labels):
    random = np.random.default_rng(1)
    if labels is None:
        y, predictions, made = 1e4 + random.normal(size=60), 1e4 + random.normal(size=(60, 1)), None
    else:
        y = np.array(labels)[random.integers(0, len(labels), 60)]
        predictions, made = random.dirichlet(np.full(len(labels), 0.2), 60).round(1), problem(y)
        predictions[:, 0] += 1 - predictions.sum(axis=1)
    scorers, block = Scorers.of(name, made or Problem(None, y)), random.integers(0, 7, 60)
    (key,) = scorers.metrics
    assert scorers._of_rows(key, predictions, y) is not None
    assert scorers.score(key, predictions, y) == pytest.approx(scorers._scored(key, predictions, y))
    expected = [scorers._scored(key, predictions[block != b], y[block != b]) for b in range(7)]
    np.testing.assert_allclose(scorers.scores_without(key, predictions, y, block, 7), expected)


def test_scores_of_special_cases_are_left_to_scikit_learn():
    y = np.array(["a", "b", "a"])
    scorers, proba = Scorers.of("auc", problem(y)), np.array([[0.2, 0.8], [0.4, 0.6], [0.9, 0.1]])
    assert scorers._of_rows("roc_auc", proba, np.array(["a", "a", "a"])) is None
    assert scorers._of_rows("roc_auc", proba, np.array(["a", "b", "z"])) is None
    own = Scorers({"accuracy": lambda model, X, y: 0.25}, np.array(["a", "b"]))
    assert own.score("accuracy", proba, y) == 0.25
    number = Scorers.of("r2", Problem(None, np.arange(3.0)))
    assert number.score("r2", np.ones((3, 1)), np.zeros(3)) == metrics.r2_score(np.zeros(3), np.ones(3))


def test_cv_that_is_a_word_is_refused():
    with pytest.raises(ValueError, match="cv must be a number of folds, a splitter, splits or fold numbers by row"):
        spinney.compare(["tree"], [[0.0], [1.0]] * 5, [0, 1] * 5, cv="five")
