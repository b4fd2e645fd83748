"""scikit-learn's own checks, all of them; what shares most of its code with another estimator, or only has other
settings, goes with the slow tests."""

import pytest
import spinney
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

# Warnings of these kinds are about the checks and their tables, which no plane separates, not about spinney.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    pytest.mark.filterwarnings("ignore:The perceptron still misclassified rows:sklearn.exceptions.ConvergenceWarning"),
]


def check_all(estimator):
    """Run all checks in one test: a test for each took a quarter more processor time. Each that fails is shown."""
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) > 40
    failed = [result for result in results if result["status"] not in ("passed", "skipped")]
    if failed:
        names = ", ".join(result["check_name"] for result in failed)
        raise ExceptionGroup(f"{estimator} fails {names}", [result["exception"] for result in failed])


@pytest.mark.parametrize(
    "estimator",
    [
        spinney.DecisionTreeClassifier(),
        spinney.DecisionTreeRegressor(),
        spinney.RandomForestClassifier(n_estimators=5),
        spinney.RandomForestRegressor(n_estimators=5),
        spinney.SurvivalTree(),
        spinney.RandomSurvivalForest(n_estimators=5, min_samples_leaf=1),
        spinney.IsolationForest(n_estimators=10),
        spinney.RandomTreesEmbedding(n_estimators=5),
        spinney.ProximityImputer(n_estimators=5, n_iter=2),
        # leaves of one row: a weight of two is a row twice, but never two rows of a leaf
        spinney.GradientBoostingClassifier(n_estimators=20, min_samples_leaf=1),
        spinney.GradientBoostingRegressor(n_estimators=20, min_samples_leaf=1, learning_rate=0.3),
        spinney.GradientBoostingRanker(n_estimators=10, min_samples_leaf=1),
        spinney.GradientBoostingSurvival(n_estimators=10, min_samples_leaf=1),
        spinney.AdaBoostClassifier(n_estimators=10),
        spinney.AdaBoostRegressor(n_estimators=10),
        spinney.LinearClassifier(),
        spinney.LinearRegressor(),
        spinney.LinearRegressor(alpha=1.0),  # with partial_fit, as the next
        spinney.LinearSVR(loss="squared_epsilon_insensitive"),
        spinney.VotingClassifier(["tree", "linear"]),
        spinney.FunctionalBoostingClassifier(n_estimators=10, learning_rate=0.5),
        spinney.SVC(),
        spinney.SVR(),
        spinney.NuSVC(nu=0.18),  # feasible for all tables of the checks; below, one of them has no unique solution
        spinney.NuSVR(),
        spinney.OneClassSVM(),
        spinney.KNeighborsClassifier(),
        spinney.KNeighborsRegressor(),
        spinney.LinearSVC(),
        spinney.LinearSVR(),
        spinney.Perceptron(),
        spinney.HistogramClassifier(),
        spinney.HistogramDensity(),
    ],
    ids=repr,
)
def test_scikit_learns_checks(estimator):
    check_all(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        spinney.HistogramRegressor(),
        spinney.VotingRegressor(["tree", "linear"]),
        spinney.FunctionalBoostingRegressor(n_estimators=20, learning_rate=0.5),
        spinney.ExtraTreeClassifier(),
        spinney.ExtraTreeRegressor(),
        spinney.ExtraTreesClassifier(n_estimators=5),
        spinney.ExtraTreesRegressor(n_estimators=5),
        spinney.ExtraSurvivalTrees(n_estimators=5, min_samples_leaf=1),
        spinney.SurvivalTree(prune="cv", cv=3, missing="surrogate", random_state=0),
        spinney.DecisionTreeClassifier(criterion="gain_ratio", max_leaf_nodes=12, max_bins=20),
        spinney.DecisionTreeRegressor(criterion="absolute_error", max_bins=32, n_jobs=2),
        spinney.DecisionTreeRegressor(ccp_alpha=1e-4, max_features="sqrt", random_state=0),
        spinney.DecisionTreeClassifier(prune="cv", cv=3, random_state=0),
        spinney.DecisionTreeRegressor(prune="cv", cv=3, random_state=0),
        spinney.RandomForestClassifier(n_estimators=7, replace=False, max_features_per_tree=0.7, random_state=0),
        spinney.RandomForestRegressor(n_estimators=7, ccp_alpha=1e-4, shrinkage=1.0, max_bins=32, random_state=0),
        spinney.ExtraTreesClassifier(n_estimators=7, bootstrap=True, sampling="stratified", random_state=0),
        spinney.GradientBoostingClassifier(
            n_estimators=30, growth="depth", max_depth=3, l2_regularization=1.0, min_samples_leaf=1
        ),
        spinney.GradientBoostingRegressor(
            "absolute_error",
            n_estimators=30,
            learning_rate=0.3,
            max_features="sqrt",
            max_bins=400,
            min_samples_leaf=1,
            random_state=0,
        ),
        spinney.GradientBoostingRanker("pairwise", n_estimators=10, min_samples_leaf=1),
        spinney.GradientBoostingSurvival("aft", n_estimators=10, min_samples_leaf=1, distribution="extreme"),
        spinney.StackingClassifier(["tree", "linear"], cv=3),
        spinney.StackingRegressor(["tree", "linear"], cv=3),
        spinney.StackingClassifier(["tree", LogisticRegression()], "tree", passthrough=True, refit=False, cv=3),
        spinney.StackingRegressor(["tree", "linear"], "greedy", cv=3, n_jobs=2),
        spinney.VotingClassifier(["tree", LogisticRegression()], voting="hard"),
        spinney.AdaBoostClassifier(n_estimators=5, algorithm="real", learning_rate=0.5),
        spinney.AdaBoostClassifier(n_estimators=5, algorithm="gentle"),
        spinney.AdaBoostClassifier(n_estimators=5, algorithm="logit"),
        spinney.AdaBoostClassifier(LogisticRegression(), n_estimators=5),
        spinney.AdaBoostRegressor(n_estimators=5, max_depth=2, loss="square"),
        spinney.FunctionalBoostingClassifier(
            ["linear_pairs", "kernel_ridge", "logistic"], n_estimators=5, random_state=0
        ),
        spinney.FunctionalBoostingRegressor("splines", n_estimators=20, learning_rate=0.5),
        spinney.SVC(kernel="poly", multi_class="ovr", class_weight="balanced", precision="double"),
        spinney.SVC(kernel="linear", scale=False, C=0.1),
        spinney.SVR(kernel="linear", C=10.0, epsilon=0.0),
        spinney.KNeighborsClassifier("cv", weights="tricube", metric="manhattan"),
        spinney.KNeighborsRegressor(3, ties="all", metric="mahalanobis"),
        spinney.LinearSVC(loss="hinge", scale=False),
        spinney.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
        spinney.LinearSVC(penalty="l1", C=0.5),
        spinney.Perceptron(averaged=True, random_state=0),
        spinney.Perceptron(penalty="elasticnet", tol=1e-3),
        spinney.KNeighborsClassifier(metric="seuclidean", leaf_size=5),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_scikit_learns_checks_away_from_the_defaults_or_long(estimator):
    check_all(estimator)
