"""Print the requirements of an extra of this package, one a line, for ``pip install -r``.

Usage: ``python tools/extras.py NAME``. Installs the tools of an extra without building the package.
"""

import sys
import tomllib
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Print the requirements of the extra named on the command line."""
    pyproject = Path(__file__).resolve().parent.parent / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if len(arguments) != 1 or arguments[0] not in extras:
        print(f"usage: python tools/extras.py {{{','.join(extras)}}}", file=sys.stderr)
        return 2
    print("\n".join(extras[arguments[0]]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
