"""Measure contestants side by side, and say on what machine.

A round runs every contestant once; ratios are taken within a round, so that a machine that slows down for a
minute slows both sides of a ratio. The claim is the median over rounds.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Seconds(NamedTuple):
    """Wall time, and CPU time of the whole process, of one call."""

    wall: float
    cpu: float


Rounds = list[dict[Any, Seconds]]


def measure(action: Callable[[], Any], calls: int = 1) -> Seconds:
    """Time `calls` calls and return the seconds of one."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        action()
    return Seconds((time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls)


def play_round(contestants: Mapping[Any, Callable[[], Any]], number: int, calls: int = 1) -> dict[Any, Seconds]:
    """Run each contestant once; who starts moves on by one with each round's number."""
    names = list(contestants)
    first = number % len(names)
    return {name: measure(contestants[name], calls) for name in names[first:] + names[:first]}


def play(contestants: Mapping[Any, Callable[[], Any]], n_rounds: int) -> Rounds:
    return [play_round(contestants, number) for number in range(n_rounds)]


def median(rounds: Rounds, name: str, clock: str = "wall") -> float:
    return statistics.median(getattr(r[name], clock) for r in rounds)


def ratio(rounds: Rounds, over: str, under: str, clock: str = "wall") -> float:
    """Median over rounds of `over`'s seconds divided by `under`'s."""
    return statistics.median(getattr(r[over], clock) / getattr(r[under], clock) for r in rounds)


LAYOUT = "{:<43}{:<5}{:>8}{:>8}{:>8}{:>8}  {:<7}{:<8}{}"
HEADER = LAYOUT.format("workload", "", "ours", "peer", "ratio", "cpu", "target", "", "evidence (ours | peer)")


@dataclass
class Row:
    """One line of the table; `target`, such as ">= 10", is about `target_value`, by default the ratio."""

    workload: str
    ours: float
    peer: float | None = None
    unit: str = "s"
    ratio: float | None = None
    cpu_ratio: float | None = None
    target: str = ""
    target_value: float | None = None
    evidence: str = ""
    same_work: bool = True
    rounds: Any = field(default=None, repr=False)

    @property
    def met(self) -> bool | None:
        """Whether the target is met by the same work; None if there is no target."""
        if not self.target:
            return None
        relation, bound = self.target.split()
        value = self.ratio if self.target_value is None else self.target_value
        holds = value >= float(bound) if relation == ">=" else value <= float(bound)
        return holds and self.same_work

    def __str__(self) -> str:
        """Render the columns of HEADER."""
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        figures = [_figure(v) for v in (self.ours, self.peer, self.ratio, self.cpu_ratio)]
        return LAYOUT.format(self.workload, self.unit, *figures, self.target, verdict, self.evidence)


def beside(workload: str, rounds: Rounds, *, ours: Any = "ours", peer: Any = "peer", **others: Any) -> Row:
    """Make the row of two contestants: medians of their seconds, and of the ratio within a round."""
    return Row(
        workload,
        median(rounds, ours),
        median(rounds, peer),
        ratio=ratio(rounds, peer, ours),
        cpu_ratio=ratio(rounds, peer, ours, "cpu"),
        rounds=rounds,
        **others,
    )


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def environment() -> dict[str, Any]:
    """Versions and machine, as they are at the start."""
    import numpy
    import sklearn
    import spinney

    return {
        "spinney": spinney.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load average": [round(load, 2) for load in os.getloadavg()],
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def write_json(path: Path, machine: dict[str, Any], rows: list[Row]) -> None:
    """Write everything that was printed, and the seconds of every round behind it."""
    document = {"environment": machine, "rows": [{**asdict(row), "met": row.met} for row in rows]}
    path.write_text(json.dumps(document, indent=1, default=str) + "\n")
