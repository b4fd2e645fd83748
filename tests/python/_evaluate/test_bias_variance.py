"""Noise, bias and variance: known answers, reference implementations, and a simulation of bagging."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import spinney
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import BaggingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from spinney.datasets import ThresholdClasses

mpl.use("agg")


class Line:
    """A linear truth with noise of standard deviation 2."""

    def __call__(self, rng, n):
        X = rng.uniform(-1, 1, (n, 2))
        return X, self.truth(X) + rng.normal(0, 2, n)

    def truth(self, X):
        return 3 * X[:, 0] - X[:, 1] + 1


class Three:
    """Three classes whose probabilities hang on the sign of one feature."""

    def __call__(self, rng, n):
        X = rng.normal(size=(n, 1))
        y = (rng.uniform(size=(n, 1)) > np.cumsum(self.truth(X), axis=1)).sum(axis=1)
        return X, np.array(["a", "b", "c"])[y]

    def truth(self, X):
        return np.where(X > 0, [[0.6, 0.3, 0.1]], [[0.1, 0.2, 0.7]])


class Constant(RegressorMixin, BaseEstimator):
    """Predicts its sample's mean plus an offset, or a constant."""

    def __init__(self, constant=None, offset=0.0):
        self.constant = constant
        self.offset = offset

    def fit(self, X, y):
        self.value_ = np.mean(y) if self.constant is None else self.constant
        return self

    def predict(self, X):
        return np.full(len(X), self.value_ + self.offset)


class Coin(ClassifierMixin, BaseEstimator):
    """Predicts one label for all rows, at random: each label with its probability in `shares`."""

    def __init__(self, shares=(0.5, 0.5), random_state=None):
        self.shares = shares
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        draw = np.random.RandomState(self.random_state)
        self.label_ = draw.choice(self.classes_, p=self.shares)
        return self

    def predict(self, X):
        return np.full(len(X), self.label_)


def noise_only(rng, n):
    return np.zeros((n, 1)), rng.normal(5, 2, n)


# ---- known answers ---------------------------------------------------------------------------------------------------


def test_a_constant_has_no_variance():
    part = spinney.bias_variance(Constant(3.0), generator=Line(), n_test=4000, random_state=0)["Constant"]
    assert part.variance == 0
    # E (3x - z + 1 - 3)² over the square: 9/3 + 1/3 + 4
    assert part.bias == pytest.approx(9 / 3 + 1 / 3 + 4, rel=0.05)
    assert part.noise == pytest.approx(4, rel=0.1)
    assert part.error == pytest.approx(part.noise + part.bias)


def test_the_mean_of_n_values_has_the_nth_part_of_their_variance():
    truth = lambda X: np.full(len(X), 5.0)  # noqa: E731
    settings = {"truth": truth, "n_train": 25, "n_repeats": 1000, "n_test": 20, "random_state": 0}
    part = spinney.bias_variance(Constant(), generator=noise_only, **settings)["Constant"]
    assert part.variance == pytest.approx(4 / 25, rel=0.18)  # 4 standard errors of a variance of 1000 values
    assert part.bias == pytest.approx(0, abs=0.01)
    shifted = spinney.bias_variance(Constant(offset=3.0), generator=noise_only, **settings)["Constant"]
    assert shifted.bias == pytest.approx(9, abs=0.1)
    assert shifted.variance == pytest.approx(part.variance)


@pytest.mark.slow
def test_least_squares_is_unbiased_for_a_line():
    part = spinney.bias_variance(
        LinearRegression(), generator=Line(), n_train=50, n_repeats=400, n_test=300, random_state=0
    )["LinearRegression"]
    # sigma² (p + 1) / n, a little more because the design is random
    assert part.variance == pytest.approx(4 * 3 / 50, rel=0.15)
    assert part.bias == pytest.approx(0, abs=0.01)


@pytest.mark.slow
def test_a_coin_by_hand():
    """Domingos' parts for a classifier that predicts 1 in 70 % of the samples, for every row."""
    source = ThresholdClasses(n_features=1)
    part = spinney.bias_variance(Coin((0.3, 0.7)), generator=source, n_repeats=1200, n_test=500, random_state=1)["Coin"]
    X, _ = source(np.random.default_rng(0), 200_000)
    zero = np.mean(X[:, 0] <= 0.5)  # rows whose best class is 0: biased
    assert part.noise == pytest.approx(0.2)
    assert part.bias == pytest.approx(zero, abs=0.05)
    assert part.variance_unbiased == pytest.approx((1 - part.bias) * 0.3, abs=0.02)
    assert part.variance_biased == pytest.approx(part.bias * 0.3, abs=0.02)
    assert part.variance == pytest.approx(part.variance_unbiased - part.variance_biased)
    error = part.bias * (0.3 * 0.2 + 0.7 * 0.8) + (1 - part.bias) * (0.7 * 0.2 + 0.3 * 0.8)
    assert part.error == pytest.approx(error, abs=0.02)
    assert part.error == pytest.approx(part.noise_effect + part.bias + part.variance)


def test_a_constant_class_has_the_error_of_its_bias_and_noise():
    part = spinney.bias_variance(DummyClassifier(strategy="constant", constant="c"), generator=Three(), random_state=0)[
        "DummyClassifier"
    ]
    assert (part.variance, part.variance_unbiased, part.variance_biased) == (0, 0, 0)
    assert part.bias == pytest.approx(0.5, abs=0.06)
    assert part.noise == pytest.approx(0.35, abs=0.01)
    assert part.error == pytest.approx(part.bias * 0.9 + (1 - part.bias) * 0.3)


# ---- reference implementations ---------------------------------------------------------------------------------------


def by_hand_from_a_table(learner, X, y, n_repeats, seed):
    """Predictions of the rows left out of each bootstrap sample; NaN for the others."""
    seed = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)
    predictions = np.full((n_repeats, len(X)), np.nan)
    for k in range(n_repeats):
        rng = np.random.default_rng([seed, k])
        rows = rng.integers(len(X), size=len(X))
        left_out = np.setdiff1d(np.arange(len(X)), rows)
        model = clone(learner).fit(X[rows], y[rows])
        predictions[k, left_out] = model.predict(X[left_out])
    return predictions


def test_squared_loss_on_a_table_by_hand():
    X, y = Line()(np.random.default_rng(0), 40)
    learner = spinney.DecisionTreeRegressor(max_depth=3)
    part = spinney.bias_variance(learner, X=X, y=y, n_repeats=30, random_state=5)["DecisionTreeRegressor"]
    predictions = by_hand_from_a_table(learner, X, y, 30, 5)
    n = (~np.isnan(predictions)).sum(axis=0)
    variance = np.nanvar(predictions, axis=0, ddof=1)
    bias = (np.nanmean(predictions, axis=0) - y) ** 2 - variance / n
    assert part.variance == pytest.approx(variance.mean())
    assert part.bias == pytest.approx(bias.mean())
    assert part.error == pytest.approx(np.nanmean((predictions - y) ** 2, axis=0).mean())
    assert part.noise is None


def test_zero_one_loss_on_a_table_by_hand():
    X, y = ThresholdClasses()(np.random.default_rng(0), 60)
    learner = KNeighborsClassifier(1)
    part = spinney.bias_variance(learner, X=X, y=y, n_repeats=40, random_state=5)["KNeighborsClassifier"]
    predictions = by_hand_from_a_table(learner, X, y, 40, 5)
    errors, biases, harms, helps = [], [], [], []
    for row in range(60):
        votes = predictions[~np.isnan(predictions[:, row]), row]
        main = np.bincount(votes.astype(int), minlength=2).argmax()
        errors.append(np.mean(votes != y[row]))
        biases.append(main != y[row])
        harms.append(np.mean(votes != main) if main == y[row] else 0)
        helps.append(np.mean(votes != main) if main != y[row] else 0)  # two classes: the other one is right
    assert part.error == pytest.approx(np.mean(errors))
    assert part.bias == pytest.approx(np.mean(biases))
    assert part.variance_unbiased == pytest.approx(np.mean(harms))
    assert part.variance_biased == pytest.approx(np.mean(helps))
    assert part.error == pytest.approx(part.bias + part.variance)


def test_a_generator_without_a_truth():
    plain = lambda rng, n: Line()(rng, n)  # noqa: E731
    known = spinney.bias_variance(LinearRegression(), generator=Line(), random_state=0)["LinearRegression"]
    part = spinney.bias_variance(LinearRegression(), generator=plain, random_state=0)["LinearRegression"]
    assert part.noise is None
    assert part.variance == known.variance
    assert part.bias == pytest.approx(known.bias + known.noise, rel=0.1)


def test_probabilities_by_squared_loss():
    part = spinney.bias_variance(DummyClassifier(), generator=Three(), loss="squared", n_train=200, random_state=0)[
        "DummyClassifier"
    ]
    by_class = [0.6 * 0.4 + 0.3 * 0.7 + 0.1 * 0.9, 0.1 * 0.9 + 0.2 * 0.8 + 0.7 * 0.3]
    assert part.noise == pytest.approx(np.mean(by_class), abs=0.01)
    shares = np.array([0.35, 0.25, 0.4])
    assert part.variance == pytest.approx((shares * (1 - shares)).sum() / 200, rel=0.3)
    assert part.bias == pytest.approx(2 * (0.25**2 + 0.05**2 + 0.3**2) / 2, rel=0.1)


# ---- members ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [spinney.BaggingRegressor(n_estimators=5), RandomForestRegressor(5)])
def test_the_identity_of_the_variance_of_a_mean(ensemble):
    part = spinney.bias_variance(ensemble, generator=Line(), n_train=40, n_repeats=12, random_state=0)[
        type(ensemble).__name__
    ]
    rho, one = part.correlation, part.member_variance
    assert part.n_members == 5
    assert 0 < rho < 1
    assert part.variance == pytest.approx(rho * one + (1 - rho) / 5 * one)
    assert part.variance_with(5) == pytest.approx(part.variance)
    assert part.variance_with(float("inf")) == pytest.approx(rho * one)
    assert part.variance_with(1) == pytest.approx(one)


@pytest.mark.slow
def test_the_correlation_foretells_the_variance_of_other_numbers_of_members():
    learners = {str(n): spinney.BaggingRegressor(n_estimators=n) for n in (2, 10)}
    found = spinney.bias_variance(learners, generator=Line(), n_train=40, n_repeats=40, n_test=100, random_state=0)
    assert found["2"].variance_with(10) == pytest.approx(found["10"].variance, rel=0.1)
    assert found["2"].correlation == pytest.approx(found["10"].correlation, abs=0.05)


def test_the_correlation_of_members_by_hand():
    """Two members of each repeat, over repeats: their covariance is ρσ²."""

    class Pair(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            half = len(y) // 2
            self.estimators_ = [Constant().fit(X, y[:half]), Constant().fit(X, y)]
            return self

        def predict(self, X):
            return np.mean([member.predict(X) for member in self.estimators_], axis=0)

    settings = {"n_train": 10, "n_repeats": 1200, "n_test": 2, "random_state": 0}
    part = spinney.bias_variance(Pair(), generator=noise_only, **settings)["Pair"]
    # variances 4/5 and 4/10, covariance 4/10; their means are equal
    assert part.member_variance == pytest.approx(0.6, rel=0.1)
    assert part.correlation == pytest.approx(0.4 / 0.6, abs=0.04)


def test_members_of_a_classifier():
    source = ThresholdClasses()
    learners = {
        "ours": spinney.BaggingClassifier(n_estimators=4),
        "votes": spinney.BaggingClassifier(n_estimators=4, voting="hard"),
        "theirs": BaggingClassifier(n_estimators=4),
    }
    found = spinney.bias_variance(learners, generator=source, n_train=30, n_repeats=8, loss="squared", random_state=0)
    for part in found.parts.values():
        assert part.variance_with(4) == pytest.approx(part.variance)


@pytest.mark.parametrize("kind", [spinney.RandomForestClassifier, spinney.ExtraTreesClassifier])
def test_trees_of_a_forest_are_members(kind):
    settings = {"generator": ThresholdClasses(), "n_train": 30, "n_repeats": 6, "n_test": 100, "random_state": 0}
    part = spinney.bias_variance(kind(5), loss="squared", **settings)[kind.__name__]
    assert part.n_members == 5
    assert 0 < part.correlation < 1
    assert part.variance_with(5) == pytest.approx(part.variance)


def test_trees_of_extra_trees_are_less_correlated_than_bagged_trees():
    learners = {"bagging": spinney.BaggingRegressor(n_estimators=8), "extra-trees": spinney.ExtraTreesRegressor(8)}
    found = spinney.bias_variance(learners, generator=Line(), n_train=40, n_repeats=12, n_test=100, random_state=0)
    assert all(part.n_members == 8 for part in found.parts.values())


def test_boosting_has_no_members_to_average():
    part = spinney.bias_variance(
        GradientBoostingRegressor(n_estimators=3), generator=Line(), n_repeats=3, random_state=0
    )
    assert part["GradientBoostingRegressor"].correlation is None
    ours = spinney.GradientBoostingRegressor(n_estimators=3)
    few = spinney.bias_variance(ours, generator=Line(), n_repeats=2, n_test=50, random_state=0)
    assert few["GradientBoostingRegressor"].correlation is None
    with pytest.raises(ValueError, match="is not an average of members"):
        part["GradientBoostingRegressor"].variance_with(3)


# ---- the report ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    learners = {"one": Constant(), "bag": spinney.BaggingRegressor(n_estimators=3)}
    return spinney.bias_variance(learners, generator=Line(), n_repeats=5, n_test=50, random_state=0)


def test_the_report_prints(report):
    lines = str(report).splitlines()
    assert lines[0] == "squared loss, 5 training sets, 50 test rows"
    assert lines[2].split() == ["error", "noise", "bias²", "variance", "correlation"]
    assert [line.split()[0] for line in lines[3:]] == ["one", "bag"]
    assert len(lines[3].split()) == 5
    assert len(lines[4].split()) == 6
    assert repr(report) == "<BiasVariance: 2 learners, 5 training sets>"


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_the_report_as_a_frame(report, backend):
    frame = report.to_frame(backend)
    assert list(frame.columns)[:3] == ["learner", "error", "noise"]
    assert "variance_biased" not in frame.columns
    assert list(frame["learner"]) == ["one", "bag"]
    assert frame["variance"][1] == report["bag"].variance
    if backend == "pandas":
        assert isinstance(frame, pd.DataFrame)


def test_the_picture_stacks_up_to_the_error(report):
    ax = report.plot()
    assert len(ax.containers) == 3
    widths = [[bar.get_width() for bar in container] for container in ax.containers]
    assert np.sum(widths, axis=0) == pytest.approx([report["one"].error, report["bag"].error])
    assert [bar.get_x() for bar in ax.containers[1]] == pytest.approx([report["one"].noise, 0])  # bias² below 0
    assert [text.get_text() for text in ax.get_yticklabels()] == ["one", "bag"]
    plt.close(ax.figure)


def test_the_report_is_the_same_for_any_number_of_threads():
    learners = {"tree": spinney.ExtraTreeRegressor(), "bag": spinney.BaggingRegressor(n_estimators=3)}
    settings = {"n_repeats": 7, "n_test": 50, "random_state": 3}
    one, two = (spinney.bias_variance(learners, generator=Line(), n_jobs=n, **settings) for n in (1, 3))
    assert one.parts == two.parts


def test_frames_are_bootstrapped_as_they_are():
    X, y = spinney.datasets.load_penguins()
    found = spinney.bias_variance(spinney.DecisionTreeClassifier(), X=X, y=y, n_repeats=40, random_state=0)
    assert 0 < found["DecisionTreeClassifier"].error < 0.1
    assert found.n_rows == 344


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Pass either a generator, or X and y"),
        ({"generator": Line(), "X": [[1]]}, "Pass either a generator, or X and y"),
        ({"X": [[1], [2]]}, "Pass y with X"),
        ({"generator": 3}, "generator must be callable"),
        ({"generator": Line(), "n_repeats": 1}, "n_repeats must be a whole number of at least 2, not 1"),
        ({"generator": Line(), "loss": "zero_one"}, "the learners are not classifiers"),
        ({"generator": Line(), "loss": "hinge"}, "loss must be 'squared' or 'zero_one', not 'hinge'"),
        ({"generator": Line(), "truth": lambda X: X}, r"truth\(X\) has the shape \(1000, 2\); it must return one mean"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        spinney.bias_variance(DummyRegressor(), **arguments)


def test_wrong_learners():
    with pytest.raises(TypeError, match="Learner 'x' is not an estimator"):
        spinney.bias_variance({"x": 3}, generator=Line())
    with pytest.raises(ValueError, match="Pass learners of one kind"):
        spinney.bias_variance({"a": DummyRegressor(), "b": DummyClassifier()}, generator=Line())
    with pytest.raises(ValueError, match="There is no learner"):
        spinney.bias_variance({}, generator=Line())
    with pytest.raises(ValueError, match="sum to 1"):
        spinney.bias_variance(DummyClassifier(), generator=Three(), truth=lambda X: np.ones((len(X), 3)))


# ---- the simulation --------------------------------------------------------------------------------------------------


def test_the_rows_of_the_simulation():
    X, y = ThresholdClasses()(np.random.default_rng(0), 100_000)
    assert np.corrcoef(X.T)[np.triu_indices(5, 1)] == pytest.approx(np.full(10, 0.95), abs=0.01)
    assert X.mean(axis=0) == pytest.approx(np.zeros(5), abs=0.02)
    assert X.std(axis=0) == pytest.approx(np.ones(5), abs=0.02)
    for side, share in ((X[:, 0] <= 0.5, 0.2), (X[:, 0] > 0.5, 0.8)):
        assert y[side].mean() == pytest.approx(share, abs=0.01)
    with pytest.raises(ValueError, match="correlation must be from 0 to 1, not 2"):
        ThresholdClasses(correlation=2)


@pytest.mark.parametrize("n_trees", [25, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 200))])
@pytest.mark.slow
def test_bagging_lowers_the_error_of_a_tree_on_thirty_rows(n_trees):
    """Thirty rows, many bootstrap trees, many such samples: votes and averages beat the tree, and soon settle."""
    source, rng = ThresholdClasses(), np.random.default_rng(0)
    new_X, new_y = source(rng, 2000)
    single, by_vote, by_mean = [], [], []
    for seed in range(30):
        X, y = source(rng, 30)
        tree = spinney.DecisionTreeClassifier()
        single.append(np.mean(tree.fit(X, y).predict(new_X) != new_y))
        model = spinney.BaggingClassifier(tree, n_trees, voting="hard", stratified=True, random_state=seed).fit(X, y)
        by_vote.append([np.mean(predictions != new_y) for predictions in model.staged_predict(new_X)])
        model.set_params(voting="soft")
        by_mean.append(np.mean(model.predict(new_X) != new_y))
    vote = np.mean(by_vote, axis=0)
    gain = np.array(single) - np.array(by_vote)[:, -1]
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))
    assert 0.2 < vote[-1] < np.mean(single) < 0.4
    assert np.mean(by_mean) == pytest.approx(vote[-1], abs=0.01)  # pure leaves: a probability is a vote
    assert np.abs(vote[n_trees // 2 :] - vote[-1]).max() < 0.01
    assert vote[0] > vote[-1] + 0.02


def test_rows_come_in_the_order_of_other_functions():
    X, y = np.arange(40.0).reshape(-1, 1), np.arange(40.0) % 3
    settings = {"n_repeats": 3, "random_state": 0}
    by_place = spinney.bias_variance(DummyRegressor(), X, y, **settings)
    assert str(by_place) == str(spinney.bias_variance(DummyRegressor(), X=X, y=y, **settings))
