"""Errors for extreme numbers and invalid text name the column and the remedy."""

import decimal
import inspect
import io
import pickle
from numbers import Integral

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import spinney
from click.testing import CliRunner
from processes import Program
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval
from spinney.cli.commands import spinney as command

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0]


def refusal(model, y):
    """Fit, and return the message of the error; None if there is none."""
    try:
        model.fit(X, y)
    except ValueError as error:
        return str(error)
    return None


def saved_and_loaded(model):
    file = io.BytesIO()
    model.save(file)
    return spinney.load(io.BytesIO(file.getvalue()))


def estimators():
    kinds = [getattr(spinney, name) for name in spinney.__all__]
    return [
        kind
        for kind in kinds
        if isinstance(kind, type)
        and hasattr(kind, "_parameter_constraints")
        and not kind.__name__.startswith("Imported")
    ]  # other libraries have fitted those


def whole_numbers():
    for kind in estimators():
        for name, constraints in kind._parameter_constraints.items():
            kinds = [c for c in constraints if isinstance(c, Interval) and c.type is Integral]
            if kinds and name in inspect.signature(kind).parameters:
                yield pytest.param(kind, name, id=f"{kind.__name__}-{name}")


@pytest.mark.filterwarnings("ignore:max_samples", "ignore:min_samples_leaf")  # name it, and take it
@pytest.mark.parametrize(("kind", "name"), list(whole_numbers()))
def test_extreme_numbers_are_accepted_or_named(kind, name):
    few = {"n_estimators": 2} if "n_estimators" in inspect.signature(kind).parameters else {}
    needed = {"cv": {"prune": "cv"}, "n_combined": {"oblique": 2}}.get(name, {})
    y = (Y > 0) if issubclass(kind, ClassifierMixin) else np.abs(Y)
    for value in (2**32, 2**40, 2**63, 2**100):
        words = refusal(kind(**(few | needed | {name: value})), y)
        assert words is None or name in words


def test_out_of_memory_is_a_clear_error():
    code = """
        import resource
        import spinney
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        try:
            spinney.RandomForestRegressor(2**31 - 1, n_jobs=1).fit([[1.0], [2.0]], [1.0, 2.0])
        except MemoryError as error:
            print(error)
    """
    assert "There is not enough memory. Grow fewer" in Program(inspect.cleandoc(code)).wait().stdout


@pytest.mark.parametrize("model", [spinney.DecisionTreeClassifier(), spinney.RandomForestClassifier(2)])
def test_costs_that_cannot_be_summed_are_named(model):
    for costs in ([[0, 1e308], [1, 0]], [[0, 1e200], [1e200, 0]]):
        with pytest.raises(ValueError, match=r"cost_matrix holds 1e\+.*, the cost of .* divide all of them"):
            model.set_params(cost_matrix=costs).fit(X, Y > 0)


@pytest.mark.parametrize(
    "model",
    [
        spinney.DecisionTreeRegressor(),
        spinney.ExtraTreeRegressor(),
        spinney.RandomForestRegressor(3, random_state=0),
        spinney.BaggingRegressor(n_estimators=3, random_state=0),
        spinney.DecisionTreeRegressor(criterion="absolute_error"),
        spinney.DecisionTreeRegressor.rpart(),
    ],
)
def test_models_of_huge_numbers_are_finite_and_can_be_saved(model):
    for scale in (1e-300, 1e140, 1e299):
        words = refusal(model, Y * scale)
        if words is not None:
            assert "Rescale y" in words
            assert model.dialect == "rpart"  # multiplies squares
            assert scale > 1e70
            continue
        assert np.isfinite(model.predict(X)).all()
        np.testing.assert_array_equal(saved_and_loaded(model).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Rescale y"):
        model.fit(X, Y * 1e307)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_diverging_boosting_raises(loss):
    model = spinney.GradientBoostingRegressor(n_estimators=40, learning_rate=1e30, loss=loss)
    with pytest.raises(ValueError, match=r"Boosting has diverged: after round \d+ .*Lower learning_rate=1e\+30"):
        model.fit(X, Y)
    assert not hasattr(model, "boosting_")


@pytest.mark.parametrize("rate", [1e5, 1e10, 1e100, 1e300])
def test_boosting_can_be_saved_with_any_learning_rate(rate):
    for model, y in (
        (spinney.GradientBoostingClassifier(n_estimators=8), Y > 0),
        (spinney.GradientBoostingClassifier(n_estimators=8), np.digitize(Y, [-0.5, 0.5])),
        (spinney.GradientBoostingClassifier(n_estimators=8, loss="exponential"), Y > 0),
        (spinney.GradientBoostingRegressor(n_estimators=8, loss="poisson"), np.abs(Y) + 1),
        (spinney.GradientBoostingRegressor(n_estimators=3), Y),
    ):
        words = refusal(model.set_params(learning_rate=rate), y)
        if words is not None:
            assert "Boosting has diverged" in words
            continue
        for again in (saved_and_loaded(model), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def broken_text():
    offsets = np.array([0, 2, 4], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xff\xfeab")])


def test_text_that_is_not_utf_8_is_named():
    for column in (
        broken_text(),
        pa.chunked_array([broken_text()]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), broken_text()),
    ):
        with pytest.raises(ValueError, match=r"Column 'town' holds text that is not UTF-8\. Decode it"):
            spinney.DecisionTreeRegressor().fit(pa.table({"town": column}), [1, 2])


def test_integers_of_128_bits_are_named():
    for kind in (pl.Int128, pl.UInt128):
        frame = pl.DataFrame({"big": pl.Series([1, 2], dtype=kind)})
        with pytest.raises(TypeError, match="Column 'big' holds integers of 128 bits; cast it to Int64 or Float64"):
            spinney.DecisionTreeRegressor().fit(frame, [1, 2])


def test_an_imputer_fills_decimals_and_columns_without_a_type():
    cells = [decimal.Decimal("1.55"), None, decimal.Decimal("2.50"), decimal.Decimal("3.05")] * 5
    table = pa.table({"price": pa.array(cells, pa.decimal128(10, 2)), "b": pa.array([1.0, 2.0, 3.0, 4.0] * 5)})
    imputer = spinney.ProximityImputer(n_estimators=3, n_iter=1, min_samples_leaf=1, random_state=0)
    for given in (table, pl.from_arrow(table)):
        filled = imputer.fit_transform(given)
        filled = filled if isinstance(filled, pa.Table) else filled.to_arrow()
        assert filled.schema.field("price").type == pa.decimal128(10, 2)
        assert filled["price"].null_count == 0
    empty = pa.table({"price": pa.nulls(2), "b": pa.array([1.0, 2.0])})
    for given in (empty, pl.from_arrow(empty)):
        filled = imputer.transform(given)
        prices = filled["price"].to_pylist() if isinstance(filled, pa.Table) else filled["price"].to_list()
        assert all(1.5 < price < 3.1 for price in prices)


def test_whole_numbers_beyond_64_bits_are_labels():
    labels = np.where(Y > 0, 1e300, -1e300)
    np.testing.assert_array_equal(spinney.DecisionTreeClassifier().fit(X, labels).predict(X), labels)


# ---- the command line ------------------------------------------------------------------------------------------------


def test_a_line_with_too_many_cells_is_named(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a,b,y\n1,"two\nlines",3\n4,5,6,7\n6,7,8\n')
    result = CliRunner().invoke(command, ["fit", str(path), "--target", "y"])
    assert result.exit_code != 0
    assert "line 4 has 4 cells, and the first line names 3 columns. Correct that line" in result.output
    path.write_text("a;b;y\n1;2;3\n4;5;6;7\n")
    result = CliRunner().invoke(command, ["fit", str(path), "--target", "y", "--delimiter", ";"])
    assert "line 3 has 4 cells" in result.output
