"""Damaged files and pickles of every estimator: refused, or equal; never a crash, never another model in silence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import spinney

TESTS = Path(__file__).parents[2]


def damaged(first, n, every):
    paths = [Path(spinney.__file__).parent.parent, TESTS]
    result = subprocess.run(
        [sys.executable, str(TESTS / "damage_every.py"), str(first), str(n), str(every)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert result.returncode == 0, f"ended with {result.returncode} after {result.stderr[-200:]}"
    found = json.loads(result.stdout)
    assert found["n_wrong"] == 0, found["wrong"]
    return found["counts"]


def test_no_damage_passes_unnoticed():
    counts = damaged(0, 300, 5)
    assert counts["pickle refused"] > 100
    assert counts["file refused"] > 40
    assert counts["sealed file refused"] + counts["sealed file loads"] > 40


@pytest.mark.slow
def test_the_shape_of_a_damaged_array_does_not_end_the_process():
    damaged(2_006_800, 30, 1)


@pytest.mark.slow
def test_no_damage_passes_unnoticed_in_many():
    damaged(10_000, 10_000, 1)
