"""Trees and forests of streams of tables: the same model, bit for bit, as of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from scanned import FEATURES, FRAME, N_ROWS, pieces
from spinney import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

CASES = {
    "tree": (DecisionTreeRegressor(max_bins=40), {"y": "y"}),
    "tree of classes": (DecisionTreeClassifier(max_bins=255, max_leaf_nodes=12), {"y": "third"}),
    "weighted tree": (DecisionTreeClassifier(max_bins=20, min_samples_leaf=3), {"y": "yes", "sample_weight": "w"}),
    "pruned tree": (DecisionTreeRegressor(max_bins=30, prune="cv", cv=3, random_state=0), {"y": "y", "groups": "g"}),
    "rates": (DecisionTreeRegressor(criterion="poisson", max_bins=30, max_depth=4), {"y": "g", "exposure": "w"}),
    "several outputs": (DecisionTreeRegressor(max_bins=30, max_depth=4), {"y": ["y", "third"]}),
    "random cuts": (spinney.ExtraTreeRegressor(random_state=0), {"y": "y"}),
    "forest": (RandomForestRegressor(12, max_bins=40, random_state=0, oob_score=True), {"y": "y"}),
    "forest of two classes": (
        RandomForestClassifier(5, max_bins=255, random_state=0, class_weight="balanced"),
        {"y": "yes", "sample_weight": "w"},
    ),
    "forest of three classes": (RandomForestClassifier(5, max_bins=30, random_state=0), {"y": "third", "groups": "g"}),
    "forced categories": (
        RandomForestRegressor(4, max_bins=30, categorical_features=["i"], min_samples_category=20, random_state=0),
        {"y": "y"},
    ),
    "extra-trees": (ExtraTreesRegressor(5, random_state=0), {"y": "y"}),
    "extra-trees of classes": (
        ExtraTreesClassifier(5, bootstrap=True, random_state=0),
        {"y": "third", "sample_weight": "w"},
    ),
}


def names_in(named):
    return [name for value in named.values() for name in ([value] if isinstance(value, str) else value)]


QUICK = ("tree", "weighted tree", "forest", "forest of three classes", "extra-trees")


@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in QUICK else pytest.mark.slow) for c in CASES])
def test_a_stream_gives_the_model_of_its_rows_in_memory(case):
    model, named = CASES[case]
    known = model.fit(FRAME[FEATURES], **{option: FRAME[name] for option, name in named.items()})
    expected, schema, predictions = known.fingerprint(), known.schema_, known.predict(FRAME[FEATURES])
    why = model.shap_values(FRAME[FEATURES])
    for size in (64, 501, N_ROWS) if case in ("tree", "forest", "extra-trees") else (300,):
        table = pieces([*FEATURES, *names_in(named)], size)
        model.fit(table, **named)
        assert model.fingerprint() == expected
        assert model.schema_ == schema
        assert table._spooled[1].spill.n_releases > 3
        if hasattr(known, "oob_score_"):
            assert model.oob_score_ == known.oob_score_
    assert np.array_equal(model.predict(table), predictions)
    assert np.array_equal(model.shap_values(table).values, why.values)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(size=st.integers(20, N_ROWS), budget=st.integers(1, 10**6))
def test_the_forest_does_not_depend_on_the_batches(size, budget):
    found = FOREST.fit(pieces([*FEATURES, "y"], size, budget), "y").fingerprint()
    assert found == FOREST.fit(FRAME[FEATURES], FRAME.y).fingerprint()


FOREST = RandomForestRegressor(3, max_bins=20, random_state=0)


def test_held_out_rows_of_a_tree_may_be_a_stream():
    head, tail = FRAME[:500], FRAME[500:]
    model = DecisionTreeRegressor(max_bins=50)
    known = model.fit(head[FEATURES], head.y, X_val=tail[FEATURES], y_val=tail.y).fingerprint()
    columns = [*FEATURES, "y"]
    model.fit(spinney.scan([head[columns]]), "y", X_val=spinney.scan([tail[columns]]), y_val="y")
    assert model.fingerprint() == known


def test_several_outputs_and_shares_stream():
    model = RandomForestClassifier(3, random_state=0).fit(FRAME[FEATURES], FRAME[["third", "yes"]].astype(str))
    table = pieces(FEATURES, 90)
    for found, known in zip(model.predict_proba(table), model.predict_proba(FRAME[FEATURES]), strict=True):
        assert np.array_equal(found, known)
    for found, known in zip(model.shap_values(table), model.shap_values(FRAME[FEATURES]), strict=True):
        assert np.array_equal(found.values, known.values)
        assert np.array_equal(found.numbers, known.numbers, equal_nan=True)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (RandomForestRegressor(2), "max_bins=None sorts all rows at every node.*Set max_bins=255"),
        (DecisionTreeRegressor(), "max_bins=None sorts all rows"),
        (RandomForestRegressor(2, criterion="absolute_error", max_bins=9), "criterion='absolute_error' sorts all rows"),
        (DecisionTreeRegressor(missing="surrogate", max_bins=9), "missing='surrogate' needs all rows of a node"),
        (DecisionTreeRegressor(max_competitors=2, max_bins=9), "max_competitors=2 needs all rows"),
        (RandomForestRegressor(2, oblique=5, max_bins=9), "oblique=5 needs all rows"),
        (DecisionTreeRegressor(prune="cv", scoring="r2", max_bins=9), "scoring needs the rows in memory"),
    ],
)
def test_what_needs_all_rows_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(pieces([*FEATURES, "y"], 100), "y")


@pytest.mark.parametrize(
    "kind", ["forest", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("tree", "extra-trees"))]
)
def test_the_command_fits_large_tables(kind, tmp_path):
    from click.testing import CliRunner
    from spinney.cli.commands import spinney as command

    FRAME[[*FEATURES, "yes"]].to_parquet(tmp_path / "all.parquet", index=False)
    words = ["fit", tmp_path / "all.parquet", "--target", "yes", "--model", kind, "--memory", "1kB", "--json"]
    words += ["--out", tmp_path / "model", *(() if kind == "tree" else ("--trees", 3))]
    done = CliRunner().invoke(command, list(map(str, words)))
    assert done.exit_code == 0, done.output
    assert "it is read out of core" in done.stderr
    model = spinney.load(tmp_path / "model")
    parameters = {} if kind == "extra-trees" else {"max_bins": 255}
    known = type(model)(random_state=0, **parameters, **({} if kind == "tree" else {"n_estimators": 3}))
    assert known.fit(FRAME[FEATURES], FRAME.yes).fingerprint() == model.fingerprint()
