"""A share of the random inputs of tools/fuzz.py: no crash, no hang, no stray error, no silent difference."""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
import spinney

FUZZ = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "fuzz.py"))
QUICK = {"saved": 400, "imported": 20, "tables": 25, "fits": 10, "properties": 20, "cycles": 10, "jobs": 6}
SLOW = {"files": 4000, "saved": 12_000, "imported": 3000, "tables": 3000, "fits": 2000, "properties": 600}
SLOW |= {"cycles": 600, "jobs": 400}
FIRST_SEED = int(os.environ.get("SPINNEY_DAMAGE_SEED", "0"))
# words of outcomes that show that the damage reached what it is to test, and the fraction of inputs with them
REACHED = {
    "files": [("pickle refused", 0.15), ("sealed file", 0.15), ("mixed trees", 0.08), ("sealed pickle", 0.08)],
    "saved": [("refused", 0.5), ("another model", 1 / 80), ("equal", 1 / 24)],
    "imported": [("refused", 0.4), ("taken", 0.1)],
    "tables": [("refused", 0.2), ("read", 0.2)],
    "fits": [("Tree", 0.1), ("Boosting", 0.1)],
    "properties": [("names", 0.1), ("the order of the rows", 0.03)],
    "cycles": [("files", 0.1), ("streams", 0.1)],
    "jobs": [("killed", 0.3), ("resumed", 0.05)],
}
SHARES = [(area, n, ()) for area, n in QUICK.items()] + [(area, n, pytest.mark.slow) for area, n in SLOW.items()]


@pytest.mark.parametrize(("area", "n_inputs"), [pytest.param(area, n, marks=marks) for area, n, marks in SHARES])
def test_no_input_wins(area, n_inputs, monkeypatch):
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(Path(spinney.__file__).parent.parent))
    plan = FUZZ["planned"]([area], n_inputs, FIRST_SEED)
    report = FUZZ["run"](plan, 1, None)
    assert (report["faults"], report["not_started"]) == ([], [])
    assert report["inputs"] >= n_inputs
    for word, fraction in REACHED[area]:
        reached = sum(n for outcome, n in report["outcomes"][area].items() if word in outcome)
        assert reached >= fraction * n_inputs, f"{word}: {reached} of {n_inputs}"


def test_a_crash_and_a_hang_are_faults(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(Path(spinney.__file__).parent.parent))
    folder = tmp_path / "fuzzing"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "saved.py").write_text(
        "import os, time\n"
        "class Area:\n"
        "    def data(self, seed):\n"
        "        return b'some bytes, of which X matters'\n"
        "    def outcome(self, seed):\n"
        "        return self.check(self.data(seed) if seed == 1 else b'', seed)\n"
        "    def check(self, data, seed):\n"
        "        if b'X' in data: os.abort()\n"
        "        if seed == 2: time.sleep(60)\n"
        "        assert seed != 3, 'differs'\n"
        "        return 'fine'\n"
    )
    state = FUZZ["run"].__globals__
    monkeypatch.setitem(state, "TESTS", tmp_path)
    monkeypatch.setitem(state, "BUSY", 1)
    monkeypatch.setitem(state["AREAS"], "saved", (1.0, 1.0, 3.0))
    report = FUZZ["run"]({"saved": [range(5)]}, 1, None)
    assert report["outcomes"]["saved"] == {"FAULT": 3, "fine": 2}
    assert [fault["seed"] for fault in report["faults"]] == [1, 2, 3]
    assert report["faults"][0]["fault"].startswith("SIGABRT")
    assert report["faults"][1]["fault"] == "it takes too long"
    assert "differs" in report["faults"][2]["fault"]
    monkeypatch.setitem(state, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "fuzzing"]:
        monkeypatch.delitem(sys.modules, name)
    assert FUZZ["minimise"]("saved", 1, 60.0).read_bytes() == b"X"


def test_workers_that_do_not_start_are_no_success(tmp_path, monkeypatch):
    monkeypatch.setitem(FUZZ["run"].__globals__, "TESTS", tmp_path)  # without the modules of the areas
    monkeypatch.delitem(os.environ, "PYTHONPATH", raising=False)
    report = FUZZ["run"]({"saved": [range(5)]}, 1, None)
    assert len(report["not_started"]) == 1
    assert re.match(r"The worker of saved did not start: exit 1: .*fuzzing", report["not_started"][0])
