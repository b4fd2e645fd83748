"""Write tests/fingerprints/fingerprints.json: hashes of what every kind of model gives, the same on every machine.

Usage: ``python tools/make_fingerprints.py`` after a change that is meant to change models: the difference in the file
shows which. With ``--check`` nothing is written; one line names each case that differs, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

table: Any = import_module("fingerprints.table")


def check() -> int:
    """Print one line for each case that differs."""
    wanted = table.read()
    n_differing = 0
    for name in {**wanted, **table.CASES}:
        if name not in wanted or name not in table.CASES:
            found = ["not in the table" if name in table.CASES else "in the table, but no longer a case"]
        else:
            found = table.differences(name, wanted=wanted[name])
        if found:
            n_differing += 1
            print(f"{name}: {', '.join(found)}")
    print(f"{n_differing} of {len(table.CASES)} cases differ.")
    return int(n_differing > 0)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a case differs")
    if parser.parse_args().check:
        return check()
    table.FILE.write_text(table.written())
    return 0


if __name__ == "__main__":
    sys.exit(main())
