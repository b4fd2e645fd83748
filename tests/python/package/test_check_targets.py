"""The check that compiles the engine for other systems: what it is asked for."""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


def test_an_unknown_target_is_refused_with_the_known_ones(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(TOOLS))
    sys.modules.pop("check_targets", None)
    import check_targets

    with pytest.raises(SystemExit) as stopped:
        check_targets.main(["aarch64-macos", "amiga"])
    assert stopped.value.code == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "amiga is not a target that is known here: name one of aarch64-macos, x86_64-w" in message
