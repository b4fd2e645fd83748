"""Entry point of the command line. It imports nothing else, so that it works without the `cli` extra."""

from __future__ import annotations

import sys

from spinney._names import conflicting_distribution

__all__ = ["main"]

_EXTRA = frozenset({"click", "rich", "polars"})


def main() -> None:
    """Run the command line; without the `cli` extra, print how to install it and exit with code 1."""
    if (conflict := conflicting_distribution()) is not None:
        print(conflict, file=sys.stderr)
        sys.exit(1)
    try:
        from spinney.cli.commands import spinney
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        print(f"The command line needs {error.name}: pip install 'spinney-ml[cli]'", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    spinney(prog_name="spinney")
