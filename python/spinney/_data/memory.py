"""The memory of the machine."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def free_memory() -> int:
    """Return how many bytes of memory are free, or how many there are; `sys.maxsize` if neither is known."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else sys.maxsize
