"""Statistics of categories in boosters that hold out folds: what they are; finished trees know categories alone."""

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle import category_statistics as reference
from oracle.boosting import losses as slow_losses
from spinney import _engine
from spinney._boosting import boosters, fit, target_encoding
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import named_loss
from spinney._model.boosting import FittedBoosting

RNG = np.random.default_rng(8)
N, N_NAMES = 360, 40
CODES = RNG.integers(0, N_NAMES, size=N)
NAMES = pd.Categorical([f"name {c}" for c in CODES])
X = pd.DataFrame({"a": RNG.normal(size=N), "name": NAMES.set_categories(NAMES.categories), "b": RNG.normal(size=N)})
X.loc[X.index[::17], "name"] = None
VALUES = RNG.normal(size=N_NAMES)[CODES] * 2 + X["a"].to_numpy() + 0.5 * RNG.normal(size=N)
QUICK = {"learning_rate": 0.3, "n_iter_no_change": 4, "max_leaf_nodes": 6, "effort": 0.0}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(QUICK | parameters))


@pytest.mark.parametrize("fold_overlap", [0, 3])
def test_encodings_agree_with_the_reference(fold_overlap):
    codes = np.where(np.arange(60) % 11 == 0, -1, np.arange(60) * 5 % 13).astype(np.int32)
    table = _engine.Table(60)
    table.add_category(codes, 14)  # one category has no rows
    gradients, weight = RNG.normal(size=60), RNG.integers(1, 4, size=60) / 2.0
    fold = np.arange(60) % 4  # fold 3 is never held out
    held_out = [fold == k for k in range(3)]
    for k in range(3):
        held_out[(k + 1) % 3][np.flatnonzero(fold == k)[:fold_overlap]] = True
    holders = [{k for k in range(3) if held_out[k][i]} for i in range(60)]
    encoder = target_encoding.TargetEncoder(LearningRows(table, gradients, weight), gradients, held_out)
    as_numbers = np.where(codes < 0, np.nan, codes)
    for member in range(3):
        grown_on, [(source, of_category, of_missing, of_unseen)] = encoder.encode(member)
        wanted = reference.of_member(as_numbers, 14, gradients, weight, holders, member, target_encoding._PRIOR_WEIGHT)
        assert source == 0
        assert grown_on.n_columns == 2
        np.testing.assert_allclose(grown_on.column(1), wanted[0], rtol=1e-12)
        np.testing.assert_allclose(of_category, wanted[1], rtol=1e-12)
        np.testing.assert_allclose([of_missing, of_unseen, of_category[13]], [*wanted[2:], wanted[3]], rtol=1e-12)
    assert table.n_columns == 1


@pytest.mark.parametrize(
    ("loss", "parameter"), [("squared_error", 0.0), ("huber", 0.9), ("logistic", 0.0), ("poisson", 0.0)]
)
def test_row_gradients_are_finite_differences(loss, parameter):
    f, y = RNG.normal(size=50), RNG.uniform(0.1, 3, size=50)
    y = np.round(y / 3) if loss == "logistic" else y
    found = -named_loss(loss, parameter).row_gradients(y, f[np.newaxis], None)[0]
    if loss == "huber":
        parameter = np.quantile(np.abs(y - f), parameter, method="averaged_inverted_cdf")
    slopes = (slow_losses(loss, y, f - 1e-6, parameter) - slow_losses(loss, y, f + 1e-6, parameter)) / 2e-6
    np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-6)


def test_finished_trees_score_held_out_rows_as_the_booster_did(monkeypatch):
    recorded = {}

    def record(members, held_out, *rest):
        recorded.update(members=members, held_out=held_out)
        return np.ones(1)

    monkeypatch.setattr(fit, "best_tree_factors", record)
    model = values().fit(X, VALUES)
    on_names = 0
    for member, part in zip(recorded["members"], recorded["held_out"], strict=True):
        trees = member.trees()
        view = FittedBoosting(trees, np.zeros(1), "identity", model.schema_.n_categories, None)
        rows = np.flatnonzero(part.weights() > 0)
        scored = view.scores(model._columns(X.iloc[rows]), 1)
        np.testing.assert_allclose(scored.T, member.engine.held_out_scores()[:, rows], rtol=1e-12)
        on_names += sum(int((tree.feature == 1).sum()) for tree in trees)
        assert max(int(tree.feature.max()) for tree in trees) <= 2
    assert on_names > 50


def test_names_are_learned_and_one_model_comes_out(tmp_path):
    train, test = slice(0, 240), slice(240, N)
    model = values().fit(X[train], VALUES[train])
    assert model.score(X[test], VALUES[test]) > 0.5
    assert {values(n_jobs=n).fit(X[train], VALUES[train]).fingerprint() for n in (1, 3)} == {model.fingerprint()}
    found = model.predict(X)
    shap = model.shap_values(X[:9])
    assert np.allclose(np.asarray(shap.values).sum(axis=1) + shap.base_values, found[:9])
    assert np.abs(np.asarray(shap.values)[:, 1]).max() > 0.5
    model.save(tmp_path / "model")
    assert np.array_equal(spinney.load(tmp_path / "model").predict(X), found)
    handle = model.to_predictor()
    rows = X.iloc[[1, 0]].to_dict("records")
    assert [handle.predict(row) for row in rows] == [found[1], found[0]]
    stranger = X[:1].assign(name="nobody")
    assert np.abs(model.predict(stranger) - X["a"][0]) < 1.5


@pytest.mark.filterwarnings("ignore:.*looks like an identifier")
def test_a_column_of_noise_adds_little():
    target = X["a"].to_numpy() + 0.5 * RNG.normal(size=N)
    identified = X.assign(name=pd.Categorical([f"{c}" for c in RNG.permutation(N) // 2]))
    train, test = slice(0, 240), slice(240, N)
    without, beside = (
        values().fit(table[train], target[train]).score(table[test], target[test])
        for table in (X.drop(columns="name"), identified)
    )
    assert beside > without - 0.05


def test_constraints_and_losses():
    apart = values(interaction_cst=[["a", "b"], ["name"]]).fit(X, VALUES)
    for tree in apart.boosting_.trees():
        assert len({int(f) == 1 for f in tree.feature if f >= 0}) <= 1
    assert any((tree.feature == 1).any() for tree in apart.boosting_.trees())
    rising = values(monotonic_cst={"a": 1}).fit(X, VALUES)
    line = pd.DataFrame({"a": np.linspace(-2, 2, 30), "name": "name 3", "b": 0.0})
    assert (np.diff(rising.predict(line)) >= 0).all()
    for loss in ("absolute_error", "huber", "quantile"):
        assert np.isfinite(values(loss=loss).fit(X, VALUES).predict(X)).all()
    exposure = RNG.uniform(0.5, 2, size=N)
    counts = RNG.poisson(exposure * np.exp(VALUES / 3))
    rates = values(loss="poisson").fit(X, counts, offset=np.log(exposure))
    assert np.allclose(rates.predict(X, offset=np.log(exposure)), rates.predict(X) * exposure)


def test_uneven_folds_of_several_repeats():
    """The second booster holds out few rows, and many that the first one also holds out."""
    codes, at = (np.arange(60) * 5 % 13).astype(np.int32), np.arange(60)
    table = _engine.Table(60)
    table.add_category(codes, 13)
    gradients = RNG.normal(size=60)
    rows = LearningRows(table, gradients, None)
    repeats = [[at < 50, (at >= 40) & (at < 53)], [at >= 55, (at > 5) & (at < 55)]]
    parts = [LearningRows(table, gradients, held.astype(float)) for repeat in repeats for held in repeat]
    found = target_encoding.target_encoded_tables(rows, gradients, parts, [2, 2])
    for i, (grown_on, _) in enumerate(found):
        holders = [{k for k in range(2) if repeats[i // 2][k][row]} for row in range(60)]
        wanted = reference.of_member(
            codes.astype(float), 13, gradients, np.ones(60), holders, i % 2, target_encoding._PRIOR_WEIGHT
        )
        np.testing.assert_allclose(grown_on.column(1), wanted[0], rtol=1e-12)


def test_a_fit_with_two_repeats_and_uneven_groups(monkeypatch):
    recorded, make_tables = [], target_encoding.target_encoded_tables

    def record(rows, gradients, held_out, boosters_per_repeat):
        recorded.append((len(held_out), boosters_per_repeat))
        return make_tables(rows, gradients, held_out, boosters_per_repeat)

    monkeypatch.setattr(boosters, "target_encoded_tables", record)
    groups = np.where(np.arange(N) < 200, 0, np.arange(N))
    values(effort=1.0, n_iter_no_change=1).fit(X, VALUES, groups=groups)
    assert recorded == [(20, [10, 10])]
