"""AdaBoost: the reference implementation, scikit-learn, the theory, and when fits end."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import spinney
from numpy.testing import assert_allclose, assert_array_equal
from oracle import adaboost as reference
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier as TheirClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier as TheirTree

ALGORITHMS = ["m1", "samme", "real", "gentle", "logit"]
EXPONENTIAL = ["m1", "samme", "real", "gentle"]


def spheres(n=400, seed=0):
    X = np.random.RandomState(seed).randn(n, 10)
    return X, ((X**2).sum(axis=1) > 9.34).astype(int)


def small(n_classes, seed=0, n=60):
    random = np.random.RandomState(seed)
    X = np.round(random.randn(n, 3), 2)
    codes = np.digitize(X[:, 0] + 0.7 * X[:, 1] + 0.8 * random.randn(n), [0.0, 0.9][: n_classes - 1])
    return X, codes, random.randint(1, 4, n).astype(float)


def half_log_odds(model, X):
    """Yield half the log-odds of the second class after each round, from the decision function."""
    weights = np.cumsum(model.estimator_weights_) / 4 if model.algorithm in ("m1", "samme") else np.ones(model.n_iter_)
    for weight, decisions in zip(weights, model.staged_decision_function(X), strict=True):
        yield weight * decisions


# ---- the reference implementation -------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rate", [1.0, 0.6])
@pytest.mark.parametrize("criterion", ["misclassification", "gini"])
def test_votes_agree_with_the_reference(n_classes, rate, criterion):
    X, codes, weight = small(n_classes)
    chosen = None if criterion == "misclassification" else criterion
    for algorithm in ("m1", "samme") if n_classes == 2 else ("samme",):
        options = {"n_estimators": 12, "algorithm": algorithm, "learning_rate": rate, "criterion": chosen}
        model = spinney.AdaBoostClassifier(**options)
        model.fit(X, codes, sample_weight=weight)
        errors, alphas, votes = reference.votes(X, codes, weight, n_classes, 12, algorithm == "samme", rate, criterion)
        assert_allclose(model.estimator_errors_, errors, rtol=1e-9)
        assert_allclose(model.estimator_weights_, alphas, rtol=1e-9)
        against = (votes.sum(axis=1, keepdims=True) - votes) / (n_classes - 1)
        expected = (votes - against) / alphas.sum()
        expected = expected if n_classes > 2 else expected[:, 1] - expected[:, 0]
        assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_real_agrees_with_the_reference(n_classes):
    X, codes, weight = small(n_classes, seed=1)
    model = spinney.AdaBoostClassifier(n_estimators=8, algorithm="real", learning_rate=0.7)
    model.fit(X, codes, sample_weight=weight)
    scores = reference.real(X, codes, weight, n_classes, 8, 0.7)
    assert_allclose(model.decision_function(X), scores if n_classes > 2 else scores[:, 1], rtol=1e-8, atol=1e-8)


def test_gentle_agrees_with_the_reference():
    X, codes, weight = small(2, seed=2)
    model = spinney.AdaBoostClassifier(n_estimators=10, algorithm="gentle").fit(X, codes, sample_weight=weight)
    assert_allclose(model.decision_function(X), reference.gentle(X, 2.0 * codes - 1, weight, 10), rtol=1e-8, atol=1e-8)


def test_gentle_of_several_classes_is_one_fit_for_each():
    X, codes, weight = small(3, seed=2)
    model = spinney.AdaBoostClassifier(n_estimators=6, algorithm="gentle").fit(X, codes, sample_weight=weight)
    scores = [reference.gentle(X, np.where(codes == k, 1.0, -1.0), weight, 6) for k in range(3)]
    assert_allclose(model.decision_function(X), np.column_stack(scores), rtol=1e-8, atol=1e-8)
    single = 1 / (1 + np.exp(-2 * np.column_stack(scores)))
    assert_allclose(model.predict_proba(X), single / single.sum(axis=1, keepdims=True), rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logit_agrees_with_the_reference(n_classes):
    X, codes, weight = small(n_classes, seed=3)
    model = spinney.AdaBoostClassifier(n_estimators=8, algorithm="logit").fit(X, codes, sample_weight=weight)
    scores = reference.logit(X, codes, weight, n_classes, 8)
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X), proba / proba.sum(axis=1, keepdims=True), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_regression_agrees_with_the_reference(loss):
    X, _, weight = small(2, seed=4)
    y = X[:, 0] ** 2 + X[:, 1]
    model = spinney.AdaBoostRegressor(n_estimators=7, max_depth=1, loss=loss, learning_rate=0.8)
    model.fit(X, y, sample_weight=weight)
    values, alphas, medians = reference.r2(X, y, weight, 7, loss, 0.8)
    assert_allclose(model.estimator_weights_, alphas, rtol=1e-9)
    assert_allclose(np.column_stack([tree.predict(X) for tree in model.estimators_]), values, rtol=1e-9)
    assert_allclose(model.predict(X), medians, rtol=1e-9)


# ---- scikit-learn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_samme_is_scikit_learns(data, rate):
    X, y = data(return_X_y=True)
    ours = spinney.AdaBoostClassifier(n_estimators=15, learning_rate=rate, criterion="gini").fit(X, y)
    theirs = TheirClassifier(TheirTree(max_depth=1), n_estimators=15, learning_rate=rate, random_state=0).fit(X, y)
    n = 15 if data is load_breast_cancer else 6  # then two splits of iris are the same but for rounding
    assert_allclose(ours.estimator_errors_[:n], theirs.estimator_errors_[:n], rtol=1e-9)
    assert_allclose(ours.estimator_weights_[:n], theirs.estimator_weights_[:n], rtol=1e-9)
    for mine, other in list(zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True))[:n]:
        assert_array_equal(mine, other)
    staged = list(zip(ours.staged_decision_function(X), theirs.staged_decision_function(X), strict=True))
    for mine, other in staged[:n]:
        assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
    if data is load_breast_cancer:
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-12)
        assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-9, atol=1e-12)


# ---- default stumps ---------------------------------------------------------------------------------------


def least_error_of_stumps(X, signs, weight):
    """The smallest weighted error of all stumps and constants."""
    best = min(weight[signs > 0].sum(), weight[signs < 0].sum())
    for column in X.T:
        order = np.argsort(column, kind="stable")
        may_cut = np.diff(column[order]) > 0
        correct = np.cumsum(weight[order] * signs[order])[:-1][may_cut]  # of a stump with -1 on the left
        total = (weight * signs).sum()
        errors = weight.sum() / 2 - np.abs([2 * correct - total, np.full(len(correct), total)]).max(axis=0) / 2
        best = min(best, errors.min(initial=1.0))
    return best


def test_default_stumps_minimise_the_weighted_error():
    X, y = spheres(300)
    model = spinney.AdaBoostClassifier(n_estimators=40).fit(X, y)
    weights = list(model.staged_weights(X, y))[:-1]
    least = [least_error_of_stumps(X, 2 * y - 1, weight) for weight in weights]
    assert_allclose(model.estimator_errors_, least, rtol=1e-6)
    gini = spinney.AdaBoostClassifier(n_estimators=40, criterion="gini").fit(X, y)
    assert np.mean(gini.estimator_errors_ > np.array(least) + 1e-6) > 0.3


def test_the_criterion_is_that_of_the_default_trees():
    def used(**options):
        return spinney.AdaBoostClassifier(n_estimators=2, **options).fit(*spheres(50)).estimator_.criterion

    assert used() == used(algorithm="m1") == "misclassification"
    assert used(max_depth=2) == used(algorithm="real") == "gini"
    assert used(algorithm="logit") == "squared_error"
    assert used(criterion="entropy") == "entropy"
    with pytest.raises(ValueError, match="Pass it to the estimator instead"):
        used(estimator=spinney.DecisionTreeClassifier(max_depth=1), criterion="gini")


# ---- the theory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", EXPONENTIAL)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_the_product_of_the_factors_is_the_mean_loss(algorithm, rate):
    X, y = spheres()
    weight = np.random.RandomState(1).rand(len(y))
    model = spinney.AdaBoostClassifier(n_estimators=40, algorithm=algorithm, learning_rate=rate)
    model.fit(X, y, sample_weight=weight)
    for t, f in enumerate(half_log_odds(model, X)):
        mean = np.average(np.exp(-(2 * y - 1) * f), weights=weight)
        assert model.train_losses_[t] == pytest.approx(mean, rel=1e-9)
        assert model.train_losses_[t] == pytest.approx(np.prod(model.normalizers_[: t + 1]), rel=1e-12)


@pytest.mark.parametrize("algorithm", EXPONENTIAL)
def test_the_training_error_is_within_its_bound(algorithm):
    X, y = spheres()
    model = spinney.AdaBoostClassifier(n_estimators=60, algorithm=algorithm).fit(X, y)
    assert (model.train_score_ <= model.train_losses_ + 1e-12).all()
    assert (np.diff(model.train_losses_) < 0).all()
    errors = [1 - score for score in model.staged_score(X, y)]
    assert_allclose(model.train_score_, errors, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["m1", "samme"])
def test_votes_of_several_classes_are_within_the_bound_too(algorithm):
    X, y = load_iris(return_X_y=True)
    model = spinney.AdaBoostClassifier(n_estimators=30, algorithm=algorithm, max_depth=2).fit(X, y)
    assert (model.train_score_ <= model.train_losses_ + 1e-12).all()


def test_factors_and_weights_follow_from_the_errors():
    X, y = spheres()
    model = spinney.AdaBoostClassifier(n_estimators=50, algorithm="m1").fit(X, y)
    error = model.estimator_errors_
    assert_allclose(model.normalizers_, 2 * np.sqrt(error * (1 - error)), rtol=1e-12)
    assert_allclose(model.estimator_weights_ / 2, 0.5 * np.log((1 - error) / error), rtol=1e-12)


def test_after_reweighting_the_last_member_has_error_one_half():
    X, y = spheres()
    model = spinney.AdaBoostClassifier(n_estimators=25).fit(X, y)
    weights = list(model.staged_weights(X, y))
    assert len(weights) == 26
    for t, member in enumerate(model.estimators_):
        wrong = member.predict(X) != y
        assert weights[t].sum() == pytest.approx(1)
        assert weights[t][wrong].sum() == pytest.approx(model.estimator_errors_[t], rel=1e-9)
        assert weights[t + 1][wrong].sum() == pytest.approx(0.5, rel=1e-9)


def test_samme_leaves_the_last_member_as_good_as_a_guess():
    X, y = load_iris(return_X_y=True)
    model = spinney.AdaBoostClassifier(n_estimators=10).fit(X, y)
    weights = list(model.staged_weights(X, y))
    for t, member in enumerate(model.estimators_):
        assert weights[t + 1][member.predict(X) != y].sum() == pytest.approx(2 / 3, rel=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("data", [load_breast_cancer, load_iris])
def test_stages_end_where_the_model_stands(algorithm, data):
    X, y = data(return_X_y=True)
    model = spinney.AdaBoostClassifier(n_estimators=7, algorithm=algorithm, max_depth=2).fit(X, y)
    *_, scores = model.staged_decision_function(X)
    assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)
    *_, proba = model.staged_predict_proba(X)
    assert_allclose(proba, model.predict_proba(X), rtol=1e-9, atol=1e-12)
    *_, labels = model.staged_predict(X)
    assert_array_equal(labels, model.predict(X))
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-9)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    *_, margins = model.staged_margins(X, y)
    assert_allclose(margins, model.margins(X, y), rtol=1e-9, atol=1e-12)
    assert ((margins > 0) <= (model.predict(X) == y)).all()
    assert np.abs(margins).max() <= 1 + 1e-12
    n_of_round = 3 if algorithm in ("gentle", "logit") and data is load_iris else 1
    assert len(model) == len(model.estimators_) == model.n_iter_ * n_of_round


def test_margins_are_votes_over_all_votes():
    X, y = load_iris(return_X_y=True)
    model = spinney.AdaBoostClassifier(n_estimators=8).fit(X, y)
    votes = np.zeros((len(y), 3))
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        votes[np.arange(len(y)), member.predict(X)] += weight
    own = votes[np.arange(len(y)), y]
    votes[np.arange(len(y)), y] = -1
    assert_allclose(model.margins(X, y), (own - votes.max(axis=1)) / model.estimator_weights_.sum(), atol=1e-12)


@pytest.mark.slow
def test_nested_spheres():
    errors = []
    for seed in range(10):
        X, y = spheres(12_000, seed)
        model = spinney.AdaBoostClassifier(n_estimators=400).fit(X[:2000], y[:2000])
        stages = list(model.staged_score(X[2000:], y[2000:]))
        errors.append([1 - stages[0], 1 - stages[-1]])
    one, all_of_them = np.mean(errors, axis=0)
    assert 0.45 <= one <= 0.47
    assert 0.09 <= all_of_them <= 0.13


# ---- how fits end -----------------------------------------------------------------------------------------


def test_a_perfect_member_ends_the_fit_and_decides(capsys):
    X = np.arange(20.0)[:, np.newaxis]
    model = spinney.AdaBoostClassifier(n_estimators=50, verbose=1).fit(X, X[:, 0] > 7)
    assert (model.stopped_, model.n_iter_) == ("perfect", 1)
    assert_array_equal(model.estimator_errors_, [0])
    assert_array_equal(model.estimator_weights_, [1])
    assert "has no error" in capsys.readouterr().err


def test_a_member_that_turns_out_perfect_outvotes_the_others():
    class Turns(TheirTree):
        """A stump in the first two fits, then a deep tree."""

        n_fits = 0

        def fit(self, X, y, sample_weight=None):
            Turns.n_fits += 1
            self.max_depth = 1 if Turns.n_fits <= 2 else None
            return super().fit(X, y, sample_weight)

    X, y = spheres(200)
    model = spinney.AdaBoostClassifier(Turns(random_state=0), 10).fit(X, y)
    assert (model.stopped_, model.n_iter_) == ("perfect", 3)
    assert model.estimator_weights_[2] > model.estimator_weights_[:2].sum()
    assert_array_equal(model.predict(X), y)


def test_no_member_better_than_a_guess_ends_the_fit():
    X, y = np.array([[0.0], [0], [1], [1], [2], [2]]), np.array([0, 1, 0, 1, 0, 1])
    with pytest.warns(UserWarning, match="no better than a random guess"):
        model = spinney.AdaBoostClassifier().fit(X, y)
    assert (model.stopped_, model.n_iter_) == ("chance", 1)
    X, y = np.array([[0.0], [0], [0], [1], [1], [1]]), np.array([0, 0, 1, 1, 1, 0])
    model = spinney.AdaBoostClassifier(n_estimators=50).fit(X, y)
    assert (model.stopped_, model.n_iter_) == ("chance", 1)  # the stump left has an error of a half
    assert model.score(X, y) == pytest.approx(4 / 6)


def test_m1_needs_members_that_err_on_less_than_half_and_samme_does_not():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 0, 1.0, 1.01)
    X, member = X[:, [1]], spinney.DecisionTreeClassifier(max_depth=1, min_samples_leaf=70)
    with pytest.warns(UserWarning, match="algorithm='samme'"):
        one = spinney.AdaBoostClassifier(member, 30, algorithm="m1").fit(X, y, sample_weight=weight)
    assert one.stopped_ == "chance"
    two = spinney.AdaBoostClassifier(member, 30)
    assert two.fit(X, y, sample_weight=weight).n_iter_ > 1


@pytest.mark.parametrize("kind", [spinney.AdaBoostClassifier, spinney.AdaBoostRegressor])
def test_held_out_rows_end_the_fit(kind):
    X, y = spheres(600) if kind is spinney.AdaBoostClassifier else load_diabetes(return_X_y=True)
    half = len(y) // 2
    model = kind(n_estimators=400, early_stopping=True, n_iter_no_change=15, random_state=0).fit(X, y)
    assert model.stopped_ == "settled"
    assert len(model.validation_score_) >= model.n_iter_ + 15
    curve = getattr(model, "validation_losses_", model.validation_score_)
    assert model.n_iter_ == np.argmin(curve) + 1 == len(model.estimator_weights_)
    given = kind(n_estimators=30).fit(X[:half], y[:half], X_val=X[half:], y_val=y[half:])
    assert (given.stopped_, given.n_iter_) == ("done", 30)
    wrong = [np.mean((p - y[half:]) ** 2) for p in given.staged_predict(X[half:])]
    assert_allclose(given.validation_score_, wrong, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_validation_loss_is_the_one_that_rounds_minimise(algorithm):
    X, y = spheres(600)
    weight = np.random.RandomState(1).rand(600)
    model = spinney.AdaBoostClassifier(n_estimators=20, algorithm=algorithm, learning_rate=0.5)
    of_rows = {"X_val": X[300:], "y_val": y[300:], "sample_weight_val": weight[300:]}
    model.fit(X[:300], y[:300], **of_rows)
    for t, f in enumerate(half_log_odds(model, X[300:])):
        margin = (2 * y[300:] - 1) * f
        losses = np.log1p(np.exp(-2 * margin)) if algorithm == "logit" else np.exp(-margin)
        assert model.validation_losses_[t] == pytest.approx(np.average(losses, weights=weight[300:]), rel=1e-9)
    same = spinney.AdaBoostClassifier(n_estimators=20, algorithm=algorithm, learning_rate=0.5)
    same.fit(X[:300], y[:300], X_val=X[:300], y_val=y[:300])
    assert_allclose(same.validation_losses_, same.train_losses_, rtol=1e-9)
    assert_allclose(same.validation_score_, same.train_score_, rtol=1e-9)


def test_early_stopping_does_not_stop_nested_spheres_early():
    X, y = spheres(4000)
    model = spinney.AdaBoostClassifier(n_estimators=400, early_stopping=True, random_state=0)
    assert model.fit(X[:2000], y[:2000]).n_iter_ > 200
    assert model.score(X[2000:], y[2000:]) > 0.85


def test_the_validation_loss_may_be_a_scorer():
    X, y = spheres(600)
    model = spinney.AdaBoostClassifier(n_estimators=60, scoring="neg_log_loss")
    model.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    *_, proba = model.staged_predict_proba(X[400:])
    loss = -np.log(proba[np.arange(200), y[400:]]).mean()
    assert model.validation_score_[-1] == pytest.approx(loss, rel=1e-6)
    values = spinney.AdaBoostRegressor(n_estimators=10, scoring="neg_mean_absolute_error")
    values.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    assert values.validation_score_[-1] == pytest.approx(np.abs(values.predict(X[400:]) - y[400:]).mean())


def test_held_out_groups_stay_together():
    X, y = spheres(300)
    groups = np.arange(300) // 30
    model = spinney.AdaBoostClassifier(n_estimators=5, early_stopping=True, random_state=0).fit(X, y, groups=groups)
    assert len(model.validation_score_) == 5
    with pytest.raises(ValueError, match="groups determine which rows are held out"):
        spinney.AdaBoostClassifier().fit(X, y, groups=groups)


# ---- members and tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_trees_of_anybody_give_the_same_model(algorithm):
    X, y = load_breast_cancer(return_X_y=True)
    kind = spinney.DecisionTreeRegressor if algorithm in ("gentle", "logit") else spinney.DecisionTreeClassifier
    plain = spinney.AdaBoostClassifier(kind(max_depth=2), 8, algorithm=algorithm).fit(X, y)
    other = spinney.AdaBoostClassifier(kind(max_depth=2, ccp_alpha=1e-300), 8, algorithm=algorithm).fit(X, y)
    assert isinstance(other.estimators_, list)
    assert_allclose(plain.decision_function(X), other.decision_function(X), rtol=1e-9, atol=1e-9)
    assert_allclose(plain.feature_importances_, other.feature_importances_, atol=1e-12)
    with pytest.raises(TypeError, match="plain decision trees of spinney"):
        other.shap_values(X)


def test_members_of_any_kind():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["benign", "malignant"])[y]
    for member in (LogisticRegression(max_iter=5000), TheirTree(max_depth=1), KNeighborsClassifier(5)):
        model = spinney.AdaBoostClassifier(member, 5, random_state=0).fit(X[::2] / X.std(axis=0), labels[::2])
        assert model.score(X[1::2] / X.std(axis=0), labels[1::2]) > 0.9
        assert isinstance(model.estimators_[0], type(member))
    X, y = load_diabetes(return_X_y=True)
    assert spinney.AdaBoostRegressor(Ridge(), 5).fit(X, y).score(X, y) > 0.4


def test_members_that_take_no_weights_get_samples():
    X, y = spheres(300)
    models = [spinney.AdaBoostClassifier(KNeighborsClassifier(3), 4, random_state=s).fit(X, y) for s in (0, 0, 1)]
    assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))
    assert (models[0].decision_function(X) != models[2].decision_function(X)).any()
    drawn = spinney.AdaBoostClassifier(n_estimators=4, resample=True, random_state=0).fit(X, y)
    assert isinstance(drawn.estimators_, list)


def test_a_weight_of_zero_leaves_a_row_out_whatever_the_members():
    X, y = spheres(200)
    weight = (np.arange(200) % 3 > 0).astype(float)
    for member in (None, TheirTree(max_depth=1, random_state=0)):
        whole = spinney.AdaBoostClassifier(member, 10).fit(X, y, sample_weight=weight)
        part = spinney.AdaBoostClassifier(member, 10).fit(X[weight > 0], y[weight > 0])
        assert_allclose(whole.decision_function(X), part.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_kind_of_table_gives_the_same_model(algorithm):
    X, y = spinney.datasets.load_penguins()
    pandas, polars = pd.DataFrame(X), pl.from_pandas(pd.DataFrame(X))
    prints = {
        spinney.AdaBoostClassifier(n_estimators=6, algorithm=algorithm, n_jobs=n).fit(table, y).fingerprint()
        for table, n in ((pandas, 1), (polars, 2), (polars.to_arrow(), None))
    }
    assert len(prints) == 1


def test_missing_values_and_categories_are_taken_as_they_are():
    X, y = spinney.datasets.load_penguins()
    model = spinney.AdaBoostClassifier(n_estimators=20).fit(X, y)
    assert model.score(X, y) > 0.95
    handle = model.to_predictor()
    frame = pd.DataFrame(X)
    for i in (0, 100, 300):
        row = frame.iloc[i].to_dict()
        assert handle.predict(row) == model.predict(frame.iloc[[i]])[0]
        assert_allclose(handle.predict_proba(row), model.predict_proba(frame.iloc[[i]])[0])


def test_sparse_tables_are_taken():
    X, y = spheres(300)
    X[np.abs(X) < 0.5] = 0
    dense = spinney.AdaBoostClassifier(n_estimators=10).fit(X, y)
    thin = spinney.AdaBoostClassifier(n_estimators=10).fit(scipy.sparse.csr_array(X), y)
    assert dense.fingerprint() == thin.fingerprint()


def test_shapley_values_add_up_to_the_scores():
    for data in (load_breast_cancer, load_iris):
        X, y = data(return_X_y=True)
        for algorithm in ALGORITHMS:
            model = spinney.AdaBoostClassifier(n_estimators=6, algorithm=algorithm, max_depth=2).fit(X, y)
            found = model.shap_values(X[:9])
            assert_allclose(found.base_value + found.values.sum(axis=1), model.decision_function(X[:9]), atol=1e-9)
    with pytest.raises(TypeError, match="median"):
        spinney.AdaBoostRegressor(n_estimators=3).fit(X, y).shap_values(X)


def test_the_handle_of_a_regression_answers_as_the_model():
    X, y = load_diabetes(return_X_y=True)
    model = spinney.AdaBoostRegressor(n_estimators=12).fit(X, y)
    handle = model.to_predictor()
    assert [handle.predict(row) for row in X[:20]] == model.predict(X[:20]).tolist()


def test_invalid_arguments_are_refused():
    X, y = spheres(60)
    fit = spinney.AdaBoostClassifier.fit
    with pytest.raises(ValueError, match="Pass a regressor"):
        fit(spinney.AdaBoostClassifier(TheirTree(), algorithm="gentle"), X, y)
    with pytest.raises(ValueError, match="Pass a classifier"):
        fit(spinney.AdaBoostClassifier(Ridge()), X, y)
    with pytest.raises(ValueError, match="no predict_proba"):
        fit(spinney.AdaBoostClassifier(RidgeClassifier(), algorithm="real"), X, y)
    with pytest.raises(ValueError, match="needs regressors"):
        spinney.AdaBoostRegressor(TheirTree()).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        fit(spinney.AdaBoostClassifier(), X, np.zeros(60))
    with pytest.raises(ValueError, match="Pass them to the estimator"):
        fit(spinney.AdaBoostClassifier(TheirTree(), unseen="error"), X, y)
    with pytest.raises(ValueError, match="go together"):
        spinney.AdaBoostClassifier().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="y_val has a class that y does not have"):
        spinney.AdaBoostClassifier().fit(X, y, X_val=X[:3], y_val=[0, 1, 2])


@pytest.mark.parametrize("algorithm", ["m1", "samme", "real"])
def test_a_learning_rate_whose_weights_overflow_is_refused(algorithm):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"learning_rate=1e\+06 is too large.* Set learning_rate to 1 or less"):
        spinney.AdaBoostClassifier(algorithm=algorithm, learning_rate=1e6).fit(X, y)
    with pytest.raises(ValueError, match="learning_rate=100000 is too large"):
        spinney.AdaBoostRegressor(learning_rate=1e5).fit(X, y)


def test_the_advice_on_a_step_that_increases_the_loss_is_a_smaller_one():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match=r"its step increases the loss.* Set learning_rate to 1 or less"):
        spinney.AdaBoostClassifier(algorithm="logit", learning_rate=23).fit(X, y)
