"""Online learning: what batches give beside a fit to all rows, files, and what is refused."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.margin import perceptron_pass
from spinney import ModelFileError
from spinney._model.file.container import from_bytes, to_bytes

RNG = np.random.default_rng(5)
N = 600
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "far": RNG.normal(size=N) * 30 + 1000,
        "town": RNG.choice(["Ely", "Rye", "Wem"], N).astype(object),
    }
)
SCORE = X["a"] + (X["far"] - 1000) / 30 + 1.5 * (X["town"] == "Rye") + RNG.normal(size=N)
VALUES = SCORE.to_numpy()
TWO = np.where(VALUES > 0.5, "yes", "no")
THREE = np.digitize(VALUES, [-0.5, 1.5])
BATCHES = np.array_split(np.arange(N), 6)
MODELS = {
    "ridge": (lambda: spinney.LinearRegressor(alpha=2.0), VALUES),
    "ridge unscaled": (lambda: spinney.LinearRegressor(alpha=2.0, scale=False), VALUES),
    "logistic": (lambda: spinney.LinearClassifier(), TWO),
    "softmax": (lambda: spinney.LinearClassifier(C=0.5), THREE),
    "svc": (lambda: spinney.LinearSVC(scale="standard"), TWO),
    "svc three": (lambda: spinney.LinearSVC(scale="standard", intercept_scaling=np.inf), THREE),
    "svr": (
        lambda: spinney.LinearSVR(scale="standard", loss="squared_epsilon_insensitive", epsilon=0.2, tol=1e-8),
        VALUES,
    ),
    "svr, plain loss": (lambda: spinney.LinearSVR(scale="standard"), VALUES),
    "ridge, chosen alpha": (lambda: spinney.LinearRegressor(), VALUES),
    "perceptron": (lambda: spinney.Perceptron(averaged=True), THREE),
    "perceptron, penalty": (lambda: spinney.Perceptron(penalty="l2"), TWO),
}
pytestmark = pytest.mark.filterwarnings("ignore:The perceptron still")


def learn(model, y, batches, weight=None):
    labels = {"classes": np.unique(y)} if y is not VALUES else {}
    for rows in batches:
        more = {} if weight is None else {"sample_weight": weight[rows]}
        model.partial_fit(X.iloc[rows], y[rows], **labels, **more)
    return model


def outputs(model):
    if not hasattr(model, "decision_function"):
        return model.predict(X)
    scores = model.decision_function(X)
    return scores - scores.mean(axis=1, keepdims=True) if scores.ndim > 1 else scores  # softmax: up to a constant


@pytest.mark.parametrize("scale", [True, False])
def test_ridge_is_that_of_all_rows_in_any_order_and_batches(scale):
    weight = RNG.integers(1, 4, N).astype(float)
    whole = spinney.LinearRegressor(alpha=3.0, scale=scale).fit(X, VALUES, weight)
    order = RNG.permutation(N)
    for batches in (BATCHES, np.array_split(order, [40, 41, 300]), [np.arange(580), *np.arange(580, N)[:, np.newaxis]]):
        model = learn(spinney.LinearRegressor(alpha=3.0, scale=scale), VALUES, batches, weight)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-7, atol=1e-8)
        named = dict(zip(model.terms_, model.coef_, strict=True))
        np.testing.assert_allclose([named[term] for term in whole.terms_], whole.coef_, rtol=1e-6, atol=1e-9)
        assert model.n_samples_seen_ == N


@pytest.mark.parametrize("name", ["logistic", "softmax", "svc", "svc three", "svr"])
def test_one_batch_is_a_fit_and_several_are_close_to_it(name):
    make, y = MODELS[name]
    whole = outputs(make().fit(X, y))
    once = learn(make(), y, [np.arange(N)])
    np.testing.assert_allclose(outputs(once), whole, rtol=1e-5, atol=1e-5 * np.abs(whole).max())
    several = outputs(learn(make(), y, BATCHES))
    assert np.sqrt(((several - whole) ** 2).mean()) < 0.06 * whole.std()
    first = outputs(learn(make(), y, BATCHES[:1]))
    assert np.sqrt(((several - whole) ** 2).mean()) < 0.5 * np.sqrt(((first - whole) ** 2).mean())


def test_rows_on_their_side_of_the_margin_are_remembered_exactly():
    """If no earlier row changes its side, the weights are those of a fit to all rows."""
    x, z = np.array([[0.1], [0.2], [-0.1], [-0.3], [0.15], [-0.2]]), np.array([1, 1, 0, 0, 1, 0])
    options = {"C": 0.5, "tol": 1e-12}  # all rows violate the margin
    whole = spinney.LinearSVC(**options).fit(x, z)
    parts = spinney.LinearSVC(**options)
    for k in range(0, 6, 2):
        parts.partial_fit(x[k : k + 2], z[k : k + 2], classes=[0, 1])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(parts.objective_, whole.objective_, rtol=1e-9)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_perceptron_makes_one_pass_in_the_order_of_the_rows(averaged, intercept):
    rows, z = X[["a", "far"]].to_numpy() / [1, 1000], np.where(TWO == "yes", 1.0, -1.0)
    weight = RNG.integers(1, 3, N).astype(float)
    options = {"averaged": averaged, "fit_intercept": intercept}
    model, whole = spinney.Perceptron(**options), spinney.Perceptron(**options)
    for part in BATCHES:
        model.partial_fit(rows[part], TWO[part], classes=["no", "yes"], sample_weight=weight[part])
    whole.partial_fit(rows, TWO, classes=["no", "yes"], sample_weight=weight)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    np.testing.assert_array_equal(model.n_updates_, whole.n_updates_)
    assert model.n_iter_ == 6
    if intercept:
        last, _, mean = perceptron_pass(rows, z, weight, np.zeros(3), 0.0)
        expected = mean if averaged else last
        np.testing.assert_allclose(model.coef_[0], expected[:-1], rtol=1e-10)
        np.testing.assert_allclose(model.intercept_[0], expected[-1], rtol=1e-10)
    else:
        once = spinney.Perceptron(shuffle=False, max_iter=1, **options).fit(rows, TWO, weight)
        np.testing.assert_allclose(whole.coef_, once.coef_, rtol=1e-12)


@pytest.mark.parametrize("averaged", [False, True])
def test_the_perceptron_leaves_out_rows_of_class_weight_0(averaged):
    rows = X[["a"]].to_numpy() * np.where(THREE == 2, 100.0, 1.0)[:, np.newaxis]
    model = spinney.Perceptron(averaged=averaged, class_weight={2: 0.0})
    alike = spinney.Perceptron(averaged=averaged)
    for part in (np.flatnonzero(THREE == 2), *BATCHES):
        model.partial_fit(rows[part], THREE[part], classes=[0, 1, 2])
        if len(own := part[THREE[part] != 2]):
            alike.partial_fit(rows[own], THREE[own], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.coef_, alike.coef_)
    np.testing.assert_array_equal(model.n_updates_, alike.n_updates_)


def test_the_perceptron_continues_a_fit():
    rows, z = X[["a"]].to_numpy(), (TWO == "yes").astype(int)
    fitted = spinney.Perceptron(max_iter=3, random_state=0).fit(rows[:300], z[:300])
    start = np.append(fitted.coef_[0], fitted.intercept_[0])
    n_updates = int(fitted.n_updates_[0])
    fitted.partial_fit(rows[300:], z[300:])
    last, _, _ = perceptron_pass(rows[300:], 2.0 * z[300:] - 1, np.ones(300), start, 0.0)
    np.testing.assert_allclose(np.append(fitted.coef_[0], fitted.intercept_[0]), last, rtol=1e-10)
    assert fitted.n_updates_[0] > n_updates
    assert fitted.n_samples_seen_ == 300


@pytest.mark.parametrize("name", MODELS)
def test_files_and_pickles_continue_and_a_fit_forgets(name):
    make, y = MODELS[name]
    begun = learn(make(), y, BATCHES[:3])
    file = io.BytesIO()
    begun.save(file)
    file.seek(0)
    loaded, copied = spinney.load(file), pickle.loads(pickle.dumps(begun))
    expected = learn(make(), y, BATCHES).fingerprint()
    for model in (begun, loaded, copied):
        assert learn(model, y, BATCHES[3:]).fingerprint() == expected
        assert model.n_samples_seen_ == N
    begun.fit(X, y)
    assert not hasattr(begun, "n_samples_seen_")
    assert begun.fingerprint() == make().fit(X, y).fingerprint()


@pytest.mark.parametrize("name", ["softmax", "svc", "perceptron"])
def test_a_damaged_state_is_refused(name):
    make, y = MODELS[name]
    file = io.BytesIO()
    learn(make(), y, BATCHES[:1]).save(file)
    header, _ = from_bytes(file.getvalue())
    entries = header if "_online" in header else header["fitted"]
    for damage in ("shape", "missing", "count"):
        state = dict(entries)
        if damage == "count":
            del entries["n_samples_seen_"]
        else:
            online = dict(state["_online"])
            first = min(online)
            online.pop(first)
            if damage == "shape":
                online[first] = online[max(online)]
            entries["_online"] = online
        with pytest.raises(ModelFileError, match="state of online learning"):
            spinney.load(io.BytesIO(to_bytes(header, [])))
        entries.clear()
        entries.update(state)


def test_what_cannot_be_right_is_refused():
    rows = BATCHES[0]
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        spinney.LinearClassifier().partial_fit(X, TWO)
    for classes in (["no"], [], [["no", "yes"], ["yes", "no"]]):
        with pytest.raises(ValueError, match="must be a list of at least two labels"):
            spinney.LinearClassifier().partial_fit(X, TWO, classes=classes)
    model = learn(spinney.LinearClassifier(), TWO, [rows])
    with pytest.raises(ValueError, match="not the same as the classes of the model"):
        model.partial_fit(X, TWO, classes=["no", "yes", "perhaps"])
    with pytest.raises(ValueError, match="class that the model was not fitted on"):
        model.partial_fit(X.iloc[:2], ["no", "perhaps"])
    with pytest.raises(ValueError, match=r"did not occur at the first call of partial_fit: 'York'. Pass rows"):
        model.partial_fit(X.assign(town="York"), TWO)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(X.rename(columns={"a": "b"}), TWO)
    again = spinney.LinearSVC().fit(X[:300], TWO[:300])
    with pytest.warns(UserWarning, match=r"was fitted by fit, .* begins anew"):
        again.partial_fit(X, TWO)
    assert again.n_samples_seen_ == N
    assert again.fingerprint() == spinney.LinearSVC().partial_fit(X, TWO, classes=["no", "yes"]).fingerprint()
    other = spinney.LinearClassifier().fit(X, TWO)
    with pytest.warns(UserWarning, match="begins anew"):
        assert other.partial_fit(X, THREE, classes=[0, 1, 2]).n_classes_ == 3
    for model, why in (
        (spinney.LinearSVC(loss="hinge"), "loss='squared_hinge'"),
        (spinney.LinearSVC(C="cv"), "a number for C"),
        (spinney.LinearSVC(penalty="l1"), "penalty='l2'"),
        (spinney.LinearSVC(class_weight="balanced"), "class_weight as a dict"),
        (spinney.Perceptron(class_weight="balanced"), "class_weight as a dict"),
    ):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match=why):
            model.partial_fit(X, TWO)


def test_rows_of_weight_0_declare_categories_and_classes_may_be_absent_at_first():
    known = (X["town"] == "Ely") & (TWO == "no")
    model = spinney.LinearClassifier().partial_fit(X, TWO, classes=["yes", "no"], sample_weight=known.astype(float))
    model.partial_fit(X[~known], TWO[~known])
    assert model.classes_.tolist() == ["no", "yes"]
    assert {"town = Ely", "town = Rye", "town = Wem"} <= set(model.terms_)
    assert model.score(X, TWO) > 0.75
    assert np.isfinite(model.coef_).all()


def test_single_rows_of_three_classes_are_learned():
    """Rounding must not move the intercepts of all classes together, further with each call."""
    model = spinney.LinearClassifier()
    for row in np.arange(100)[:, np.newaxis]:
        model.partial_fit(X.iloc[row, :2], THREE[row], classes=[0, 1, 2])
    assert abs(model.intercept_.sum()) < 1e-6 * abs(model.intercept_).max()
    assert model.score(X.iloc[:, :2], THREE) > np.bincount(THREE).max() / N + 0.1


# ---- default settings --------------------------------------------------------------------------------------------


def test_every_online_model_learns_with_default_settings():
    for make in (spinney.LinearRegressor, spinney.LinearSVR):
        model = make()
        for part in BATCHES:
            model.partial_fit(X.iloc[part], VALUES[part])
        assert model.n_samples_seen_ == N
    for make in (spinney.LinearClassifier, spinney.LinearSVC, spinney.Perceptron):
        assert make().partial_fit(X, TWO, classes=["no", "yes"]).n_samples_seen_ == N


def generalised_error(rows, y, weight, alpha):
    """Return the error of generalised cross-validation, from the rows and the hat matrix."""
    centre = (rows * weight[:, None]).sum(axis=0) / weight.sum()
    spread = np.sqrt((weight[:, None] * (rows - centre) ** 2).sum(axis=0) / weight.sum())
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / spread])
    left = design.T @ (weight[:, None] * design) + alpha * np.diag([0.0] + [1.0] * rows.shape[1])
    hat = design @ np.linalg.solve(left, design.T * weight)
    return (weight * (y - hat @ y) ** 2).sum() / (1 - np.trace(hat) / weight.sum()) ** 2


@pytest.mark.parametrize("noise", [0.1, 3.0, 30.0])
def test_ridge_chooses_alpha_from_the_sums(noise):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 6)) * [1, 10, 0.1, 1, 1, 1]
    y = rows[:, 0] + noise * rng.normal(size=40)
    weight = rng.integers(1, 4, 40).astype(float)
    model = spinney.LinearRegressor()
    for part in np.array_split(rng.permutation(40), 7):
        model.partial_fit(rows[part], y[part], sample_weight=weight[part])
    best = min((0.1, 1.0, 10.0), key=lambda alpha: generalised_error(rows, y, weight, alpha))
    assert model.alpha_ == best
    whole = spinney.LinearRegressor(alpha=best).fit(rows, y, weight)
    np.testing.assert_allclose(model.predict(rows), whole.predict(rows), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("unit", [0.05, 0.1, 1.0])
def test_small_weights_leave_ridge_its_choice_of_alpha(unit):
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(90, 20)), rng.normal(size=90)
    weight = np.where(np.arange(90) % 3 == 0, 0.0, unit)
    assert spinney.LinearRegressor().fit(rows, y, sample_weight=weight).alpha_ == 10.0
    model = spinney.LinearRegressor()
    for part in np.array_split(np.arange(90), 3):
        model.partial_fit(rows[part], y[part], sample_weight=weight[part])
    assert (model.alpha_, model.n_samples_seen_) == (10.0, 60)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("noise", ["normal", "laplace", "standard_cauchy"])
def test_the_epsilon_insensitive_loss_is_learned_in_batches(epsilon, noise):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 4))
    y = rows @ [1.0, -2.0, 0.5, 0.0] + 3 + getattr(rng, noise)(size=1000)
    whole = spinney.LinearSVR(epsilon=epsilon, tol=1e-8).fit(rows, y)
    once = spinney.LinearSVR(epsilon=epsilon, tol=1e-8).partial_fit(rows, y)
    np.testing.assert_allclose(once.predict(rows), whole.predict(rows), atol=1e-5)
    parts = spinney.LinearSVR(epsilon=epsilon)
    for part in np.array_split(np.arange(1000), 20):
        parts.partial_fit(rows[part], y[part])
    assert np.sqrt(((parts.predict(rows) - whole.predict(rows)) ** 2).mean()) < 0.06 * whole.predict(rows).std()
    alone = spinney.LinearSVR(epsilon=epsilon).fit(rows[:50], y[:50])
    assert np.abs(parts.coef_ - whole.coef_).max() < np.abs(alone.coef_ - whole.coef_).max()


def test_the_quadratic_of_earlier_rows_is_nowhere_below_their_loss():
    rng = np.random.default_rng(2)
    rows, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    for epsilon in (0.0, 0.4):
        model = spinney.LinearSVR(epsilon=epsilon, C=2.0).partial_fit(rows, y)
        curvature, slope = model._online["curvature"][0], model._online["slope"][0]
        for _ in range(200):
            weights = rng.normal(size=3) * rng.choice([0.1, 1, 10])
            error = np.abs(y - rows @ weights[:2] - weights[2])
            loss = 2.0 * np.maximum(error - epsilon, 0).sum()
            quadratic = weights @ curvature @ weights / 2 - slope @ weights + model._online["constant"][0]
            assert quadratic >= loss - 1e-9
