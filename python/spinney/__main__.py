"""``python -m spinney`` is the command ``spinney``."""

from spinney.cli import main

if __name__ == "__main__":
    main()
