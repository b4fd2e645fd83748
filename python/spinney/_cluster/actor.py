"""What all actors on workers share."""

from __future__ import annotations

from typing import Any


class Answering:
    """An actor whose own errors cannot be taken for those of the way to it."""

    def do(self, method: str, *args: Any) -> tuple[bool, Any]:
        """Call a method; return whether it has gone well, and what it returns or raises."""
        try:
            return True, getattr(self, method)(*args)
        except Exception as error:
            return False, error

    def is_there(self) -> bool:
        """Answer whoever asks whether there is a way to this worker."""
        return True
