"""scikit-learn's own checks of bagging, all of them."""

import pytest
import spinney
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

# Warnings of this kind are about the checks, not about spinney.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")

# These compare rows given twice with rows of weight 2, shuffled: no two bootstrap samples can agree then. They run with
# members that get every row; test_bagging.py has the statistical statement for the bootstrap.
ABOUT_ALL_ROWS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def run(estimator, check):
    if check.func.__name__ in ABOUT_ALL_ROWS:
        estimator.set_params(bootstrap=False, max_samples=None)
        if isinstance(estimator, spinney.BaggingClassifier):
            estimator.set_params(stratified=False)
    check(estimator)


@parametrize_with_checks([spinney.BaggingClassifier(n_estimators=4), spinney.BaggingRegressor(n_estimators=4)])
def test_scikit_learns_checks(estimator, check):
    run(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        spinney.BaggingClassifier(RidgeClassifier(), stratified=True, n_jobs=2),
        spinney.BaggingClassifier(LogisticRegression(), voting="hard", stratified="balanced"),
        spinney.BaggingRegressor(Ridge(), max_samples=0.7, bootstrap=False, bootstrap_features=True),
    ]
)
def test_scikit_learns_checks_away_from_the_defaults(estimator, check):
    run(estimator, check)


def test_several_outputs_are_refused_with_a_remedy():
    X, y = [[0.0], [1.0], [2.0]], [[0, 1], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match=r"shape \(3, 2\).*RandomForestClassifier.*MultiOutputClassifier"):
        spinney.BaggingClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"its members support one.*RandomForestRegressor.*MultiOutputRegressor"):
        spinney.BaggingRegressor(spinney.SVR()).fit(X, y)
