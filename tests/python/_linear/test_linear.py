"""Linear models: scikit-learn's to rounding where both apply, and mixed tables."""

import io

import numpy as np
import pandas as pd
import pytest
import spinney
from every_estimator import CLASSES, TABLE, VALUES
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from spinney._data import Schema, read_table
from spinney._data.design import Design
from spinney._data.reproducible import cholesky, solve_factored
from spinney._linear import solve
from spinney._linear.terms import CodedTerms, DenseTerms

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 4)) * [1.0, 20.0, 0.05, 3.0] + [0, 5, 1, -2]
SCORE = X[:, 0] + X[:, 1] / 20 + RNG.normal(size=300)
WEIGHT = RNG.integers(1, 4, 300).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_classes_are_scikit_learns_logistic_regression(n_classes, C):
    y = np.digitize(SCORE, np.quantile(SCORE, np.linspace(0, 1, n_classes + 1)[1:-1]))
    own = spinney.LinearClassifier(C, scale=False).fit(X, y, WEIGHT)
    other = LogisticRegression(C=C, solver="newton-cg", tol=1e-11, max_iter=10_000).fit(X, y, sample_weight=WEIGHT)
    np.testing.assert_allclose(own.predict_proba(X), other.predict_proba(X), atol=2e-7)
    np.testing.assert_array_equal(own.predict(X), other.predict(X))
    np.testing.assert_allclose(own.coef_, other.coef_, atol=1e-5)


def test_regression_is_scikit_learns_ridge():
    for own, other in (
        (spinney.LinearRegressor(3.0, scale=False), Ridge(3.0)),
        (spinney.LinearRegressor(scale=False), RidgeCV()),
        (spinney.LinearRegressor(0.0), Ridge(0.0)),
    ):
        own.fit(X, SCORE)
        other.fit(X, SCORE)
        np.testing.assert_allclose(own.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(own.coef_, other.coef_, rtol=1e-8)
        np.testing.assert_allclose(own.intercept_, other.intercept_, rtol=1e-8)
    assert own.alpha_ == 0.0


def test_a_weight_of_two_is_a_row_twice():
    twice = np.repeat(np.arange(300), WEIGHT.astype(int))
    for model, y in ((spinney.LinearClassifier(), SCORE > 0), (spinney.LinearRegressor(), SCORE)):
        weighted, repeated = model.fit(X, y, WEIGHT).predict(X), model.fit(X[twice], y[twice]).predict(X)
        np.testing.assert_allclose(weighted, repeated, atol=1e-12)


def test_units_do_not_matter_unless_scale_is_false():
    y = SCORE > 0
    metres, feet = X.copy(), X * [1, 3.28, 1000, 1]
    scaled = [spinney.LinearClassifier().fit(table, y).predict_proba(table) for table in (metres, feet)]
    raw = [spinney.LinearClassifier(scale=False).fit(table, y).predict_proba(table) for table in (metres, feet)]
    np.testing.assert_allclose(*scaled, atol=1e-10)
    assert np.abs(raw[0] - raw[1]).max() > 1e-3


def test_mixed_tables_need_no_encoding():
    model = spinney.LinearClassifier().fit(TABLE, CLASSES)
    assert "colour = red" in model.terms_
    assert "size is missing" in model.terms_
    assert model.coef_.shape == (3, len(model.terms_))
    assert spinney.LinearRegressor().fit(TABLE, VALUES).score(TABLE, VALUES) > 0.9


def test_collinear_columns_do_no_harm():
    double = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2]])
    for model in (spinney.LinearRegressor(0.0), spinney.LinearRegressor(), spinney.LinearClassifier(1e6)):
        y = SCORE if isinstance(model, spinney.LinearRegressor) else SCORE > 0
        assert np.isfinite(model.fit(double, y).coef_).all()


def test_separable_classes_have_finite_coefficients():
    model = spinney.LinearClassifier(1e8).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    assert np.isfinite(model.coef_).all()
    assert model.predict([[1.4], [1.6]]).tolist() == ["a", "b"]


def test_single_rows_and_files():
    model = spinney.LinearClassifier().fit(TABLE, CLASSES)
    row = {name: column[5] for name, column in TABLE.items()}
    assert model.to_predictor().predict(row) == model.predict(TABLE)[5]
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    predictor = spinney.load_predictor(file)
    np.testing.assert_array_equal(predictor.predict_proba(TABLE), model.predict_proba(TABLE))
    assert "LinearClassifier" in repr(predictor)


def test_a_class_without_weight_is_refused():
    with pytest.raises(ValueError, match="The class 'b' has no row of positive weight"):
        spinney.LinearClassifier().fit([[1.0], [2.0], [3.0]], ["a", "b", "c"], [1, 0, 1])


def test_counterfactuals_of_a_linear_model_are_found():
    X, y = spinney.datasets.load_penguins()
    model = spinney.LinearClassifier().fit(X, y)
    found = spinney.inspect.counterfactual(model, X[:1], wanted="Chinstrap", X=X)
    assert "Chinstrap" in str(found)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_over_a_thousand_terms_give_the_optimum_of_scikit_learn(n_classes):
    random = np.random.default_rng(0)
    X = (random.random((120, 1100)) < 0.1).astype(float)  # so many terms that the Hessian is not factored
    y = random.integers(0, n_classes, 120)
    model = spinney.LinearClassifier(scale=False).fit(X, y)
    peer = LogisticRegression(tol=1e-9, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


def test_codes_of_categories_give_the_sums_of_their_indicators():
    """The terms of many categories are not a matrix; sums over rows and over terms are those of the matrix."""
    random = np.random.default_rng(1)
    table = {
        "a": random.choice(["u", "v", "w", None], 50),
        "x": np.where(random.random(50) < 0.2, np.nan, random.normal(size=50)),
        "b": random.choice(["c", "d"], 50).astype(object),
    }
    schema = Schema.learn(read_table(table))
    columns = schema.encode(read_table(table))
    design = Design.learn(columns, schema, np.ones(50))
    used = random.random(50) < 0.8
    dense = DenseTerms(design.matrix(columns)).take(used).with_constant()
    coded = CodedTerms.of(design, columns).take(used).with_constant()
    coefficients, weights = random.normal(size=(len(dense), 3)), random.random((2, used.sum()))
    assert len(coded) == len(dense) == len(design) + 1
    np.testing.assert_allclose(coded.combined(coefficients), dense.combined(coefficients), atol=1e-12)
    np.testing.assert_allclose(coded.combined(coefficients), (dense.matrix.T @ coefficients).T, atol=1e-12)
    np.testing.assert_allclose(coded.weighted_sums(weights), dense.matrix @ weights.T, atol=1e-12)
    np.testing.assert_allclose(coded.weighted_squares(weights[0]), dense.matrix**2 @ weights[0], atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_over_a_thousand_categories_give_the_optimum_of_scikit_learn(n_classes):
    random = np.random.default_rng(0)
    table = pd.DataFrame({f"c{j}": random.integers(0, 340, 700).astype(str) for j in range(4)})
    y = random.integers(0, n_classes, 700)
    model = spinney.LinearClassifier(scale=False).fit(table, y)
    assert len(model.terms_) > 1000
    indicators = pd.get_dummies(table)
    peer = LogisticRegression(tol=1e-9, max_iter=1000).fit(indicators, y)
    np.testing.assert_allclose(model.predict_proba(table), peer.predict_proba(indicators), atol=1e-5)


@pytest.mark.parametrize("size", [1, 5, 32, 33, 80])
def test_factors_and_solutions_are_those_of_numpy(size):
    """Those of a single matrix, in panels, are bit-identical to those of a stack of matrices."""
    random = np.random.default_rng(size)
    X, right = random.normal(size=(size, size + 5)), random.normal(size=(65, size))
    matrix = X @ X.T
    factor = cholesky(matrix)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(factor, cholesky(matrix[np.newaxis])[0])
    solved = solve_factored(factor, right)
    np.testing.assert_allclose(solved @ matrix, right, atol=1e-6)
    np.testing.assert_array_equal(solved, [solve_factored(factor, one) for one in right])
    np.testing.assert_array_equal(matrix, X @ X.T)


@pytest.mark.parametrize("scale", [True, False])
def test_equations_by_row_give_the_solution_by_term(monkeypatch, scale):
    """With many more terms than rows."""
    random = np.random.default_rng(4)
    terms, target, weight = random.normal(size=(60, 40)), random.normal(size=40), random.integers(1, 3, 40) * 1.0
    penalty = np.ones(60) if scale else random.uniform(0.5, 2, 60)
    by_term = solve.Ridge(terms, target, weight, penalty)
    monkeypatch.setattr(solve, "MOST_FACTORED", 50)
    by_row = solve.Ridge(terms, target, weight, penalty)
    for alpha in (0.1, 1.0, 10.0):
        for one, other in zip(by_row.solve(alpha), by_term.solve(alpha), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
        np.testing.assert_allclose(by_row.leave_one_out_error(alpha), by_term.leave_one_out_error(alpha), rtol=1e-8)
    assert by_row._is_by_row
    assert not by_term._is_by_row
