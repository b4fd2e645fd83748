"""Check a built wheel: small enough, nothing missing, nothing that should have stayed at home.

Usage: ``python tools/check_wheel.py WHEEL``; prints one line per defect and exits 1 if there is any.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

MAX_BYTES = 10_000_000
REQUIRED = (
    r"spinney/__init__\.py",
    r"spinney/__init__\.pyi",
    r"spinney/_estimator/other_libraries\.toml",
    r"spinney/_estimator/parameter_texts\.toml",
    r"spinney/py\.typed",
    r"spinney/_engine\.[^/]*\.?(so|pyd)",
    r"spinney/_engine\.pyi",
    r"spinney/datasets/batting\.csv",
    r"spinney/datasets/loans\.csv",
    r"spinney/datasets/penguins\.csv",
    r"spinney/datasets/README\.md",
    r"spinney/_evaluate/report/assets/template\.html",
    r"spinney/_evaluate/report/assets/report\.css",
    r"spinney/_evaluate/report/assets/page\.js",
    r"spinney/_evaluate/report/assets/d3\.min\.js",
    r"spinney/_evaluate/report/assets/d3\.LICENSE",
    r"spinney/_evaluate/report/assets/plot\.umd\.min\.js",
    r"spinney/_evaluate/report/assets/plot\.LICENSE",
    r"spinney_ml-[^/]*\.dist-info/licenses/LICENSE",
    r"spinney_ml-[^/]*\.dist-info/entry_points\.txt",
)
# Everything belongs to the package or its metadata; sources, caches and archives stay at home.
OUTSIDE = re.compile(r"^(?!spinney/|spinney_ml-[^/]*\.dist-info/)")
UNWANTED = re.compile(r"(^|/)(tests?|__pycache__|cpp|bindings|nanobind)/|\.(a|o|cpp|h|pyc|log)$")


def defects(wheel: Path, max_bytes: int = MAX_BYTES) -> list[str]:
    """Return what is wrong with a wheel, one sentence each."""
    found = []
    size = wheel.stat().st_size
    if size >= max_bytes:
        found.append(f"{wheel.name} has {size:,} bytes; the limit is {max_bytes:,}.")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for pattern in REQUIRED:
        n_matches = sum(re.fullmatch(pattern, name) is not None for name in names)
        if n_matches != 1:
            found.append(f"{n_matches} files match {pattern}; there should be one.")
    for name in names:
        if OUTSIDE.search(name) or UNWANTED.search(name):
            found.append(f"{name} does not belong in a wheel.")
    return found


def main(arguments: list[str]) -> int:
    """Check the wheel named on the command line."""
    if len(arguments) != 1:
        print("usage: python tools/check_wheel.py WHEEL", file=sys.stderr)
        return 2
    wheel = Path(arguments[0])
    found = defects(wheel)
    for defect in found:
        print(defect)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(found)} defects")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
