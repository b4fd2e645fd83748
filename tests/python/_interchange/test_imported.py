"""Imported models predict like the library that fitted them, at and next to every threshold.

The models, rows and answers are in tests/golden/imported (tools/make_imported_models.py), so that no library is needed.
"""

import io
from pathlib import Path

import numpy as np
import pytest
import spinney
from sklearn.linear_model import LinearRegression
from spinney._interchange.reading.nodes import as_singles, cuts_below_singles, cuts_of_singles, reach_of_singles

FOLDER = Path(__file__).parents[2] / "golden" / "imported"
WORDS = np.array(["ant", "bee", "cow", "doe", "elk"], dtype=object)
CASES = sorted(path.stem for path in FOLDER.glob("*.npz"))
READERS = {
    "xgboost": spinney.from_xgboost,
    "lightgbm": spinney.from_lightgbm,
    "catboost": spinney.from_catboost,
    "treelite": spinney.from_treelite,
}
# XGBoost adds in single precision, as treelite does for it; the others in double, with logarithms of the platform
SINGLE, DOUBLE = {"rtol": 2e-6, "atol": 3e-6}, {"rtol": 1e-14, "atol": 1e-15}
NEAR = {"xgboost": SINGLE, "lightgbm": DOUBLE, "catboost": DOUBLE, "treelite": SINGLE}


def read(name, **more):
    path = next(p for p in FOLDER.glob(f"{name}.*") if p.suffix != ".npz")
    return READERS[name.partition("_")[0]](path, **more)


def answers(model, table):
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


class Case:
    def __init__(self, name):
        self.name = name
        with np.load(FOLDER / f"{name}.npz") as file:
            stored = dict(file)
        self.library = name.partition("_")[0]
        self.near = NEAR[self.library]
        self.rows = stored["rows"]
        more = {"missing": float(stored["missing"])} if self.library == "xgboost" else {}
        if name == "catboost_words":
            more = {"categories": {"d": WORDS.tolist(), "e": range(12)}}
        self.model = read(name, **more)
        self.scores, self.predictions, self.parts = stored["scores"], stored["predictions"], stored.get("contributions")
        # random forests of LightGBM predict means of trees, but show sums of them
        self.factor = self.model.boosting_.n_rounds if name.startswith("lightgbm_forest") else 1
        self.table = self.rows
        if stored["words"]:
            self.table = {name: self.rows[:, j] for j, name in enumerate("abcde")}
            known = ~np.isnan(self.rows[:, 3])
            words = np.full(len(self.rows), None, dtype=object)
            words[known] = WORDS[self.rows[known, 3].astype(int)]
            self.table["d"] = words

    def imported_predictions(self):
        return answers(self.model, self.table)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return Case(request.param)


def test_predictions_are_those_of_the_library(case):
    predicted = case.model.predict(case.table) if case.name == "xgboost_softmax" else case.imported_predictions()
    if predicted.ndim == 2 and case.predictions.ndim == 1:
        predicted = predicted[:, 1]
    np.testing.assert_allclose(predicted, case.predictions.reshape(predicted.shape), **case.near)


def test_scores_are_those_of_the_library(case):
    scores = case.model._scores(case.table)
    theirs = case.scores.reshape(scores.shape)
    if case.library in ("lightgbm", "catboost") and case.factor == 1:
        np.testing.assert_array_equal(scores, theirs)  # the same sums in the same order
    else:
        np.testing.assert_allclose(scores * case.factor, theirs, **case.near)


def test_row_predictors_and_files_predict_the_same(case):
    predicted = case.imported_predictions()
    handle = case.model.to_predictor()
    ask = handle.predict_proba if hasattr(case.model, "classes_") else handle.predict
    for i in range(0, len(predicted), 7):
        row = [case.table[n][i] for n in "abcde"] if isinstance(case.table, dict) else case.rows[i].tolist()
        np.testing.assert_array_equal(ask(row), predicted[i])
    file = io.BytesIO()
    case.model.save(file)
    for load in (spinney.load, spinney.load_predictor):
        again = load(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(answers(again, case.table), predicted)
    assert spinney.load(io.BytesIO(file.getvalue())).source_ == case.model.source_


def test_shapley_values_are_those_of_the_library(case):
    if case.parts is None:
        assert case.library == "treelite"  # has none
        return
    table = {n: v[:12] for n, v in case.table.items()} if isinstance(case.table, dict) else case.rows[:12]
    explained = case.model.shap_values(table)
    values = explained.values.reshape(12, 5, -1).transpose(0, 2, 1) * case.factor
    theirs = case.parts.reshape(12, -1, 6)
    near = {"rtol": 1e-5, "atol": 5e-6} if case.library == "xgboost" else {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(values, theirs[..., :-1], **near)
    base = np.broadcast_to(np.atleast_1d(explained.base_value) * case.factor, theirs[0, :, -1].shape)
    np.testing.assert_allclose(base, theirs[0, :, -1], **near)
    pairs = case.model.shap_values(table, interactions=True).interactions
    np.testing.assert_allclose(pairs.sum(axis=2), explained.values, atol=1e-12)


# ---- cuts in single precision -----------------------------------------------------------------------------


def singles():
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    known = np.float32([0.0, -0.0, 1.0, -1.0, 0.1, 2.45, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45, 1.1754944e-38])
    return np.concatenate([known, patterns[np.isfinite(patterns)]])


def beside(single):
    """Doubles around each single: itself, its neighbours, halfway to them, and next to each of these."""
    above, below = (np.nextafter(single, np.float32(end)).astype(np.float64) for end in (np.inf, -np.inf))
    wide = single.astype(np.float64)
    near = np.stack([wide, above, below, (wide + above) / 2, (wide + below) / 2], axis=1)
    near[~np.isfinite(near)] = 1e39
    return np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)], axis=1)


def test_cuts_send_doubles_where_rounding_sends_them():
    with np.errstate(over="ignore"):
        thresholds = singles()
        x = beside(thresholds)
        rounded, column = x.astype(np.float32), thresholds[:, np.newaxis]
        np.testing.assert_array_equal(x <= cuts_below_singles(thresholds)[:, np.newaxis], rounded < column)
        np.testing.assert_array_equal(x <= reach_of_singles(thresholds)[:, np.newaxis], rounded <= column)
        for k in range(x.shape[1]):
            np.testing.assert_array_equal(x <= cuts_of_singles(x[:, k])[:, np.newaxis], rounded <= x[:, k : k + 1])
        ends = np.array([as_singles(float(threshold)) for threshold in thresholds[:200]])
        inside = (ends[:, :1] <= x[:200]) & (x[:200] <= ends[:, 1:])
        np.testing.assert_array_equal(inside, rounded[:200] == column[:200])


def test_cuts_at_the_ends_of_single_precision():
    assert reach_of_singles(np.float32(np.inf))[0] == np.inf
    huge = np.array([1e39, 2.0**128, np.finfo(np.float64).max, np.inf])
    assert not (huge <= reach_of_singles(np.finfo(np.float32).max)[0]).any()
    assert (-huge <= cuts_below_singles(-np.finfo(np.float32).max)[0]).all()


# ---- as any model -----------------------------------------------------------------------------------------


def test_an_imported_model_is_read_drawn_and_explained_as_any_other():
    case = Case("xgboost_words")
    model, table = case.model, case.table
    assert model.classes_.tolist() == [0, 1]
    assert model.source_.startswith("XGBoost 3")
    assert model.objective_ == "binary:logistic"
    assert model.schema_.names == list("abcde")
    first = model[0][0]
    assert "d is one of" in first.export_text() or "d is " in first.export_text()
    assert len(first.rules()) == first.tree_.n_leaves
    assert spinney.tree_svg(first).startswith("<svg")
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert spinney.importance_frame(model) is not None
    assert model.apply(table).shape == (len(case.rows), 6, 1)
    one = {name: values[0] for name, values in table.items()}
    assert spinney.explain_row(first, one)
    assert spinney.partial_dependence(model, table, "a") is not None
    with pytest.raises(TypeError, match="cannot be fitted again"):
        model.fit(case.rows, np.zeros(len(case.rows)))


def test_an_imported_model_is_exported_or_refused():
    assert "CASE" in spinney.to_sql(read("lightgbm_binary"), table="rows")
    with pytest.raises(ValueError, match="cannot treat some numbers as missing values"):
        spinney.to_sql(read("lightgbm_zero_missing"), "rows")
    for name in ("lightgbm_one_vs_all", "xgboost_two_targets", "lightgbm_sqrt", "treelite_forest"):
        with pytest.raises(ValueError, match=r"does not support the link .* of this Imported"):
            spinney.to_c(read(name))


@pytest.mark.parametrize("name", ["xgboost_softprob", "xgboost_poisson", "lightgbm_binary", "catboost_binary"])
def test_an_imported_model_predicts_the_same_in_onnx(name):
    runtime = pytest.importorskip("onnxruntime")
    model, rows = read(name), np.asarray(Case(name).table, dtype=np.float64)
    session = runtime.InferenceSession(spinney.to_onnx(model).SerializeToString())
    found = session.run(None, {"X": rows})[-1]
    wanted = model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-13)


def test_the_command_line_converts_supported_files(tmp_path):
    from click.testing import CliRunner
    from spinney.cli.commands import spinney as main

    out = tmp_path / "model.spinney"
    done = CliRunner().invoke(main, ["convert", str(FOLDER / "lightgbm_words.txt"), str(out)])
    assert done.exit_code == 0
    assert "from LightGBM: 6 rounds" in done.output
    case = Case("lightgbm_words")
    np.testing.assert_array_equal(spinney.load(out).predict_proba(case.table), case.imported_predictions())
    for data, message in ((b"\x80\x04K\x01.", "is a pickle"), (b"hello", "is not a supported model file")):
        (tmp_path / "other").write_bytes(data)
        done = CliRunner().invoke(main, ["convert", str(tmp_path / "other")])
        assert done.exit_code == 1
        assert message in done.output


def test_a_category_that_xgboost_would_refuse_is_refused():
    case = Case("xgboost_words")
    table = dict(case.table)
    table["d"] = np.array(["fox"] * len(case.rows), dtype=object)
    with pytest.raises(ValueError, match="did not occur at fit: 'fox'"):
        case.model.predict(table)


def test_rounds_and_labels_can_be_chosen():
    every, few = read("lightgbm_binary"), read("lightgbm_binary", num_iteration=2, classes=["no", "yes"])
    assert (every.boosting_.n_rounds, few.boosting_.n_rounds) == (6, 2)
    rows = Case("lightgbm_binary").rows
    assert set(few.predict(rows)) <= {"no", "yes"}
    np.testing.assert_array_equal(few._scores(rows), every.boosting_.first(2).scores(every._columns(rows), 1))
    part = read("xgboost_squared", iteration_range=(1, 3))
    assert part.boosting_.n_rounds == 2
    with pytest.raises(ValueError, match="between 0 and 6"):
        read("xgboost_squared", iteration_range=(3, 9))
    with pytest.raises(ValueError, match="classes must be 2 different labels"):
        read("xgboost_binary", classes=["a", "a"])


# ---- refusals ---------------------------------------------------------------------------------------------


def changed(name, *pairs):
    path = next(p for p in FOLDER.glob(f"{name}.*") if p.suffix != ".npz")
    data = path.read_bytes()
    for old, new in pairs:
        assert old in data
        data = data.replace(old, new, 1)
    return data


@pytest.mark.parametrize(
    ("reader", "name", "pairs", "message"),
    [
        ("xgboost", "xgboost_squared", [(b'"name":"gbtree"', b'"name":"gblinear"')], "linear booster \\(gblinear\\)"),
        ("xgboost", "xgboost_squared", [(b"reg:squarederror", b"reg:mine")], "an unknown objective"),
        ("xgboost", "xgboost_squared", [(b'"size_leaf_vector":"1"', b'"size_leaf_vector":"3"')], "multi_output_tree"),
        ("xgboost", "xgboost_squared", [(b'"left_children":[1', b'"left_children":[0')], "tree 0 is unusable"),
        ("lightgbm", "lightgbm_squared", [(b"is_linear=0", b"is_linear=1")], "linear trees, which cannot be imported"),
        ("lightgbm", "lightgbm_squared", [(b"left_child=", b"left_child=99 ")], "'left_child' has"),
        (
            "lightgbm",
            "lightgbm_squared",
            [(b"objective=regression", b"objective=mine")],
            "an unknown objective, 'mine'",
        ),
        ("catboost", "catboost_words", [], "stores only hashes. Pass their values"),
        ("catboost", "catboost_squared", [(b'"FloatFeature"', b'"OnlineCtr"')], "statistics of the target by category"),
        ("treelite", "treelite_forest", [(b'"<="', b'"=="')], "compares by '=='"),
    ],
)
def test_unsupported_models_are_refused_by_name(reader, name, pairs, message):
    with pytest.raises(spinney.ModelFileError, match=message):
        READERS[reader](changed(name, *pairs))


def test_a_number_for_missing_values_beside_categories_is_refused():
    with pytest.raises(
        spinney.ModelFileError, match="combines categorical columns with missing=, which cannot be imported"
    ):
        read("xgboost_sets", missing=0.0)


def test_pickles_and_unknown_files_are_refused():
    for reader in READERS.values():
        with pytest.raises(spinney.ModelFileError, match="is a pickle, and loading a pickle runs code"):
            reader(b"\x80\x04K\x01.")
        with pytest.raises(TypeError, match="not int"):
            reader(3)
    with pytest.raises(TypeError, match="not a file: scikit-learn's files are pickles"):
        spinney.from_sklearn("model.pkl")
    with pytest.raises(TypeError, match="not LinearRegression"):
        spinney.from_sklearn(LinearRegression())


@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_another_library_names_its_reader(reader):
    for library, name in [
        ("XGBoost", "xgboost_words.json"),
        ("LightGBM", "lightgbm_binary.txt"),
        ("LightGBM", "lightgbm_sets_dump.json"),
        ("CatBoost", "catboost_binary.json"),
    ]:
        if library.lower() != reader:
            with pytest.raises(spinney.ModelFileError, match=f"model of {library}. Use spinney.from_{library.lower()}"):
                READERS[reader](FOLDER / name)


def test_the_error_for_hashed_categories_names_their_column():
    with pytest.raises(spinney.ModelFileError, match=r"splits column 'd' on .* categories=\{'d': \['a', 'b'\]\}"):
        read("catboost_words")
