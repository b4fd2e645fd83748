"""Models exported to C have bit-identical predictions."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
import spinney
from written_models import (
    AVERAGES,
    COLOURS,
    LINEAR_AVERAGE,
    MIXED,
    MODELS,
    NUMBERS,
    PAIR,
    VALUES,
    predictions_of,
    probe,
    schema_of,
    table_of,
)

GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(GCC is None, reason="needs gcc")
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CARRIED = sorted(set(MODELS) - {"surrogates"})
QUICK = ["forest, other"]


def compiled(source, folder, options=STRICT, compiler=GCC):
    path = folder / "model.c"
    path.write_text(source, encoding="utf-8")
    subprocess.run([compiler, *options, "-shared", "-fPIC", "-o", folder / "model.so", path], check=True)
    return ctypes.CDLL(str(folder / "model.so"))


def doubles(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def coded_rows(library, model, columns, name="model"):
    """Return rows as the C file reads them."""
    n = len(next(iter(columns.values())))
    rows = np.empty((n, len(columns)))
    for j, feature in enumerate(schema_of(model).features):
        column = columns[feature.name]
        if feature.kind not in ("category", "ordered"):
            rows[:, j] = column
            continue
        code = getattr(library, f"{name}_code" if feature.holds_text else f"{name}_code_of_number")
        code.restype = ctypes.c_double
        for i, value in enumerate(column):
            given = ctypes.c_double(value) if not feature.holds_text else None if value is None else value.encode()
            rows[i, j] = code(j, given)
    return rows


def asked(library, model, rows, name="model"):
    n_values = predictions_of(model, table_of(model, {k: v[:1] for k, v in probe(model).items()}))[0].shape[1]
    out = np.full((len(rows), n_values), np.nan)
    codes = np.zeros((len(rows), max(1, getattr(model, "n_outputs_", 1))), dtype=np.int32)
    for i, row in enumerate(np.ascontiguousarray(rows)):
        getattr(library, f"{name}_predict")(doubles(row), doubles(out[i]))
        if hasattr(library, f"{name}_class"):
            getattr(library, f"{name}_class")(doubles(row), codes[i].ctypes.data_as(ctypes.POINTER(ctypes.c_int)))
    return out, codes[:, 0]


def assert_same(model, library, columns, name="model"):
    proba, labels = predictions_of(model, table_of(model, columns))
    found, codes = asked(library, model, coded_rows(library, model, columns, name), name)
    np.testing.assert_array_equal(found.view(np.uint64), np.ascontiguousarray(proba).view(np.uint64))
    if labels is not None:
        own = codes if isinstance(model, spinney.IsolationForest) else np.asarray(model.classes_)[codes]
        np.testing.assert_array_equal(own, labels)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CARRIED]
)
def test_predictions_are_bit_identical(name, tmp_path):
    model = MODELS[name]()
    assert_same(model, compiled(spinney.to_c(model), tmp_path), probe(model))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "tempered of two" else pytest.mark.slow) for name in AVERAGES]
)
def test_averages_are_bit_identical(name, tmp_path):
    model = AVERAGES[name]()
    assert_same(model, compiled(spinney.to_c(model), tmp_path), probe(model))


@pytest.mark.slow
def test_an_average_with_linear_leaves(tmp_path):
    model = LINEAR_AVERAGE()
    assert model.estimators_[0]._fitted.has_linear_leaves
    assert_same(model, compiled(spinney.to_c(model), tmp_path), probe(model))


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-14"])
def test_no_compiler_fuses_what_spinney_does_not(compiler, tmp_path):
    if (found := shutil.which(compiler)) is None:
        pytest.skip(f"{compiler} is not here")
    model = MODELS["boosting of three"]()
    library = compiled(spinney.to_c(model), tmp_path, ["-O3", "-Wall", "-Wextra", "-Werror"], found)
    assert_same(model, library, probe(model))


@pytest.mark.slow
def test_several_classes_and_outputs(tmp_path):
    y = np.column_stack([PAIR, np.where(VALUES > 0, "up", "down"), np.arange(len(VALUES)) % 3])
    model = spinney.DecisionTreeClassifier(max_depth=4, random_state=0).fit(MIXED, y)
    library = compiled(spinney.to_c(model), tmp_path)
    columns = probe(model)
    rows = coded_rows(library, model, columns)
    codes, out = (ctypes.c_int * 3)(), np.empty(7)
    for row, wanted in zip(rows, model.predict(columns), strict=True):
        library.model_class(doubles(row), codes)
        library.model_predict(doubles(row), doubles(out))
        assert [labels[code] for labels, code in zip(model.classes_, codes, strict=True)] == list(wanted)


@pytest.mark.slow
def test_names_cannot_leave_their_quotes(tmp_path):
    odd = ['"; int evil;', "a\\", "??/", "new\nline", "*/", "å", COLOURS[2]]
    X = {odd[0]: np.array(odd * 6, dtype=object), "\n#error": np.arange(42.0)}
    model = spinney.DecisionTreeClassifier().fit(X, [f"{word}'" for word in odd] * 6)
    library = compiled(spinney.to_c(model, name="odd_1"), tmp_path)
    names = (ctypes.c_char_p * 2).in_dll(library, "odd_1_columns")
    assert [name.decode() for name in names] == list(X)
    classes = (ctypes.c_char_p * len(odd)).in_dll(library, "odd_1_classes")
    assert [label.decode() for label in classes] == list(model.classes_)
    library.odd_1_code.restype = ctypes.c_double
    assert [library.odd_1_code(0, value.encode()) for value in schema_of(model).features[0].categories] == list(
        range(7)
    )
    assert np.isnan(library.odd_1_code(0, b"unheard of"))
    assert np.isnan(library.odd_1_code(1, b"a"))


@pytest.mark.slow
def test_codes_out_of_range_read_nothing_beyond_the_tables(tmp_path):
    model = MODELS["forest, other"]()
    library = compiled(spinney.to_c(model), tmp_path)
    rows = np.full((4, 5), 0.5)
    rows[:, 4] = [-1.0, 1e300, np.inf, 5.0]
    found, _ = asked(library, model, rows)
    np.testing.assert_array_equal(found[1], found[3])
    np.testing.assert_array_equal(found[2], found[3])
    assert np.isfinite(found).all()


def test_there_is_no_state_between_calls():
    for line in spinney.to_c(MODELS["boosting of two"]()).splitlines():
        assert not re.match(r"static (?!const|.*\()", line), line


def test_refusals_say_what_to_do():
    with pytest.raises(ValueError, match="surrogate splits"):
        spinney.to_c(MODELS["surrogates"]())
    model = MODELS["tree of classes"]().set_params(unseen="error")
    with pytest.raises(ValueError, match="set_params\\(unseen='missing'\\)"):
        spinney.to_c(model)
    with pytest.raises(ValueError, match="C identifier"):
        spinney.to_c(MODELS["a leaf"](), name="int")
    with pytest.raises(TypeError, match="estimators_"):
        spinney.to_c(spinney.BaggingRegressor(n_estimators=2).fit(np.eye(4), np.arange(4)))
    with pytest.raises(TypeError, match="median"):
        spinney.to_c(spinney.AdaBoostRegressor(n_estimators=2).fit(np.eye(8), np.arange(8)))
    ranker = spinney.GradientBoostingRanker(n_estimators=2).fit(np.eye(8), np.arange(8) % 2, groups=np.arange(8) // 4)
    with pytest.raises(TypeError, match="Ranker cannot be exported to C: no format supports boosting for ranking"):
        spinney.to_c(ranker)
    survival = spinney.GradientBoostingSurvival(n_estimators=2).fit(np.eye(8), np.arange(1, 9))
    with pytest.raises(TypeError, match="no format supports boosting for survival analysis"):
        spinney.to_c(survival)
    with pytest.raises(TypeError, match="its predictions are not those of trees"):
        spinney.to_c(spinney.RandomTreesEmbedding(n_estimators=2).fit(np.eye(8)))
    first = spinney.DecisionTreeRegressor(max_depth=1)
    started = spinney.GradientBoostingRegressor(n_estimators=2, init=first).fit(np.eye(8), np.arange(8))
    with pytest.raises(ValueError, match="init='constant'"):
        spinney.to_c(started)


def test_unsupported_scores_are_refused():
    many = np.column_stack([VALUES, VALUES**2])
    several = spinney.GradientBoostingRegressor(n_estimators=3).fit(NUMBERS, many)
    for write in (spinney.to_c, spinney.to_onnx, lambda m: spinney.to_sql(m, "t"), spinney.to_lightgbm):
        with pytest.raises(ValueError, match="cannot hold the 2 outputs of this GradientBoostingRegressor"):
            write(several)
    priced = spinney.GradientBoostingClassifier(n_estimators=3, cost_matrix=[[0, 1], [5, 0]]).fit(NUMBERS, PAIR)
    for write in (spinney.to_c, spinney.to_onnx, lambda m: spinney.to_sql(m, "t"), spinney.to_xgboost):
        with pytest.raises(ValueError, match="cannot hold the misclassification costs"):
            write(priced)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"loss": "squared_log_error"}, "cannot hold the link 'log1p'.* Fit with another loss"),
        ({"loss": "quantile", "quantile": [0.1, 0.9]}, "cannot hold the several quantiles.* Fit one model for each"),
    ],
)
def test_refused_boosting_names_the_setting_to_change(options, remedy):
    model = spinney.GradientBoostingRegressor(n_estimators=3, **options).fit(NUMBERS, np.arange(len(NUMBERS)))
    with pytest.raises(ValueError, match=remedy):
        spinney.to_c(model)
