"""Bit-identical models on every machine: the outputs of every kind of model have the committed hashes."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import spinney
from processes import run

from fingerprints import table
from fingerprints.cases import CASES
from fingerprints.digest import digest

WANTED = table.read()
TOOL = Path(__file__).parents[2] / "tools" / "make_fingerprints.py"


def test_the_table_has_every_case_and_no_other():
    assert list(WANTED) == list(CASES)


def test_asking_the_tool_for_help_writes_nothing(tmp_path, monkeypatch, capsys):
    file = tmp_path / "fingerprints.json"
    monkeypatch.setattr(table, "FILE", file)
    monkeypatch.setattr(table, "written", lambda: "prints")
    monkeypatch.setattr(sys, "argv", ["make_fingerprints.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(TOOL), run_name="__main__")
    assert "--check" in capsys.readouterr().out
    assert not file.exists()


@pytest.mark.parametrize("name", CASES)
def test_bits_are_as_committed(name):
    differing = table.differences(name, wanted=WANTED[name])
    assert not differing, f"{name}: other bits than committed in: {', '.join(differing)}"


@pytest.mark.slow
def test_bits_are_as_committed_on_three_threads():
    differing = {name: table.differences(name, 3, WANTED[name]) for name in CASES}
    assert not {name: parts for name, parts in differing.items() if parts}


LOWERED = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from fingerprints import table
from spinney import _engine
differing = {{name: table.differences(name) for name in table.CASES}}
print(json.dumps([_engine.instruction_set(), {{name: parts for name, parts in differing.items() if parts}}]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "avx2", "avx512"])
def test_bits_are_as_committed_by_every_instruction_set(name):
    used, differing = json.loads(run(LOWERED, SPINNEY_ISA=name).stdout)
    if used != name:
        pytest.skip(f"this processor has no {name}")
    assert differing == {}


def test_one_bit_of_one_leaf_is_seen():
    tree = spinney.DecisionTreeRegressor(max_depth=3).fit(np.arange(20.0)[:, np.newaxis], np.arange(20.0) ** 2 / 7)
    right = tree.predict(np.arange(20.0)[:, np.newaxis])
    wrong = right.copy()
    wrong[7] = np.nextafter(wrong[7], np.inf)
    assert digest(wrong) != digest(right)
    assert digest(right.astype(np.float32)) != digest(right)
    assert digest(-0.0) != digest(0.0)
    assert digest(np.copysign(np.nan, -1)) == digest(np.nan)


def test_the_tool_names_what_differs(tmp_path, monkeypatch, capsys):
    sys.path.insert(0, str(TOOL.parent))
    import make_fingerprints

    few = {name: WANTED[name] for name in ("tree: gini", "boosting: huber")}
    monkeypatch.setattr(table, "CASES", {name: CASES[name] for name in few})
    monkeypatch.setattr(table, "FILE", tmp_path / "table.json")
    table.FILE.write_text(table.written())
    assert json.loads(table.FILE.read_text()) == few
    assert make_fingerprints.check() == 0
    few["boosting: huber"] = {**few["boosting: huber"], "predict": "0" * 16}
    table.FILE.write_text(json.dumps({**few, "gone": {}}))
    assert make_fingerprints.check() == 1
    assert (
        "boosting: huber: predict\ngone: in the table, but no longer a case\n2 of 2 cases differ.\n"
        in capsys.readouterr().out
    )
