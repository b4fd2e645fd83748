"""A slice of the random fits: what must agree agrees. `python fuzz_fits.py --fits 50000` runs many."""

import runpy
from pathlib import Path

import pytest

FUZZ = runpy.run_path(str(Path(__file__).with_name("fuzz_fits.py")))


@pytest.mark.parametrize("n_fits", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_what_must_agree_agrees(n_fits):
    counts, wrong = FUZZ["run"](0, n_fits)
    assert wrong == []
    fitted = {name for name in counts if not name.startswith("refused")}
    assert len(fitted) >= 14
    assert sum(counts[name] for name in fitted) > n_fits / 2
