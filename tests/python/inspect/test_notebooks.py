"""Results in notebooks and terminals: tables as HTML, progress only where somebody watches."""

import io
import re
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spinney
from spinney._data.display import ShownAsTable


@pytest.fixture(scope="module")
def results():
    X, y = spinney.datasets.load_penguins()
    tree = spinney.DecisionTreeClassifier(prune="cv", random_state=0).fit(X, y)
    forest = spinney.RandomForestClassifier(20, random_state=0).fit(X, y)
    return [
        tree.cp_table_,
        forest.importances(X, y, "permutation"),
        forest.shap_values(X[:3]).output("Gentoo"),
        forest.predict_support(X[:3]),
        spinney.compare({"tree": tree}, X, y, cv=3),
        spinney.partial_dependence(forest, X, ["body_mass_g"]),
        spinney.counterfactual(tree, X.iloc[0], "Gentoo", X=X, n=1),
        spinney.nearest_rows(forest, X, X.iloc[0]),
        spinney.split_table(X, y, "island"),
        spinney.bias_variance(spinney.DecisionTreeClassifier(max_depth=2), X, y, n_repeats=3, random_state=0),
    ]


def test_results_are_tables_in_notebooks(results):
    for result in results:
        html = result._repr_html_()
        frame = result.to_frame()
        assert html.count("<th>") == frame.shape[1], type(result).__name__
        assert html.count("<tr>") == 1 + min(30, frame.shape[0]), type(result).__name__


def test_rules_are_tables_in_notebooks():
    X, y = spinney.datasets.load_penguins()
    html = spinney.rules(spinney.DecisionTreeClassifier(max_depth=1).fit(X, y))._repr_html_()
    assert html.count("<tr>") == 3
    assert "<td>flipper_length_mm &gt; 206.5</td><td>Gentoo</td><td>129</td><td>38%</td><td>95%</td>" in html
    weights = spinney.DecisionTreeRegressor(max_depth=1).fit(X[["year"]], X["year"])
    assert "<th>correct</th>" not in spinney.rules(weights)._repr_html_()


def test_every_result_with_a_frame_is_shown():
    kinds = [getattr(spinney, name) for name in spinney.__all__]
    with_frames = {kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "to_frame")}
    assert {kind.__name__ for kind in with_frames if not hasattr(kind, "_repr_html_")} == set()


def test_names_are_escaped():
    class Result(ShownAsTable):
        def __str__(self):
            return "<b>&\nsecond line"

        def to_frame(self):
            import pandas as pd

            return pd.DataFrame({"<i>": ["<script>"], "x": [1 / 3]})

    html = Result()._repr_html_()
    assert html.startswith("<p>&lt;b&gt;&amp;</p>")
    assert "<script>" not in html
    assert "0.3333" in html


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def slow_comparison(monkeypatch):
    monkeypatch.setattr("spinney._evaluate.progress.SILENT_SECONDS", 0.0)
    X = np.random.default_rng(0).normal(size=(60, 2))
    return lambda **options: spinney.compare({"tree": spinney.DecisionTreeRegressor()}, X, X[:, 0], cv=3, **options)


def test_progress_is_shown_in_a_terminal_and_not_in_a_pipe(slow_comparison, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    slow_comparison()
    assert "░ reading the table" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    slow_comparison(progress=False)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    slow_comparison()
    assert sys.stderr.getvalue() == ""


def test_progress_is_shown_in_a_notebook(slow_comparison, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    slow_comparison()
    assert "░ reading the table" in sys.stderr.getvalue()


def test_short_calls_show_no_progress(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    X = np.random.default_rng(0).normal(size=(60, 2))
    spinney.compare({"tree": spinney.DecisionTreeRegressor()}, X, X[:, 0], cv=3)
    assert sys.stderr.getvalue() == ""


@pytest.fixture
def watch(monkeypatch):
    """Every fit counts as long; a call sets the stream of errors."""
    monkeypatch.setattr("spinney._estimator.parallel.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("spinney._estimator.parallel._TERMINAL_SECONDS", 0.001)

    def start(stream):  # in the test: pytest replaces the stream after the fixture
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return start


X = np.random.default_rng(0).normal(size=(2000, 4))
SLOW = [
    (spinney.GradientBoostingRegressor(n_estimators=60), r"\d+ of 60 rounds, loss"),
    (spinney.BaggingRegressor(n_estimators=5), r"\d of 5 members"),
    (spinney.AdaBoostRegressor(n_estimators=5), r"\d of 5 rounds"),
    (spinney.StackingRegressor(["tree", "linear"], cv=3), r"\d of 8 fits"),
    (spinney.FunctionalBoostingRegressor("linear", n_estimators=30), r"\d+ of 30 rounds, loss"),
    (spinney.RandomForestRegressor(20), r"\d\.\d s"),
    (spinney.SVR(), r"\d\.\d s"),
]


@pytest.mark.parametrize(("model", "shown"), SLOW, ids=lambda one: type(one).__name__)
def test_long_fits_show_their_progress_in_a_terminal(model, shown, watch):
    terminal = watch(Terminal())
    model.fit(X, X[:, 0] + X[:, 1] ** 2)
    lines = terminal.getvalue().split("\r\x1b[2K")[1:]
    assert lines
    assert all(line.startswith(f"{type(model).__name__}: ") for line in lines)  # not those of its members
    assert re.search(shown, lines[-1])
    assert lines[-1].endswith("\n")


def test_verbose_zero_shows_nothing_in_a_terminal(watch):
    terminal = watch(Terminal())
    for model in (spinney.GradientBoostingRegressor(n_estimators=20), spinney.BaggingRegressor(n_estimators=3)):
        model.set_params(verbose=0).fit(X, X[:, 0])
    assert terminal.getvalue() == ""


def test_long_fits_show_nothing_in_a_pipe_or_a_worker(watch, monkeypatch):
    terminal, pipe = watch(Terminal()), io.StringIO()
    model = spinney.GradientBoostingRegressor(n_estimators=20)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.fit, X, X[:, 0]).result()
    monkeypatch.setattr("multiprocessing.process._current_process._name", "LokyProcess-1")
    model.fit(X, X[:, 0])
    monkeypatch.setattr("multiprocessing.process._current_process._name", "MainProcess")
    watch(pipe)
    model.fit(X, X[:, 0])
    assert terminal.getvalue() == pipe.getvalue() == ""


def test_fits_of_a_comparison_show_nothing_but_its_progress(watch):
    terminal = watch(Terminal())
    spinney.compare({"boosting": spinney.GradientBoostingRegressor(n_estimators=20)}, X, X[:, 0], cv=2)
    spinney.compare({"boosting": spinney.GradientBoostingRegressor(n_estimators=20)}, X, X[:, 0], cv=2, progress=False)
    assert "GradientBoosting" not in terminal.getvalue()


def test_progress_leaves_the_model_as_it_is(watch):
    terminal = watch(Terminal())
    model = spinney.GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, X[:, 0])
    assert "rounds" in terminal.getvalue()
    silent = spinney.GradientBoostingRegressor(n_estimators=30, random_state=0, verbose=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(X), silent.predict(X))
