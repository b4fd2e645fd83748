"""Damage inputs and fit at random: no crash, no hang, no stray error, no silent difference.

    python tools/fuzz.py                            a quick share of every area, as in CI
    python tools/fuzz.py --inputs 1000000 --processes 16 --out counts.json
    python tools/fuzz.py --areas tables fits --seconds 3600 --first 5000000
    python tools/fuzz.py --replay tables 4711       one input, in this process
    python tools/fuzz.py --minimise tables 4711     the smallest input that does the same, in build/fuzz

Run it with PYTHONPATH=python from the root. Each seed of an area is one input, the same in every run. Workers are
processes of bounded memory; one that crashes, or takes too long for an input, is replaced, and the input is a fault.
Seeds that found faults before are in tests/fuzzing/corpus.json, and come first.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
import math
import os
import platform
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
CORPUS = TESTS / "fuzzing" / "corpus.json"
# areas: modules of tests/fuzzing, their share of the inputs, what one input takes in ms, and the seconds it may take
AREAS = {
    "files": (0.3300, 1.5, 60.0),
    "saved": (0.4100, 0.7, 60.0),
    "imported": (0.1510, 1.5, 60.0),
    "tables": (0.0500, 8.0, 60.0),
    "fits": (0.0300, 25.0, 120.0),
    "properties": (0.0200, 20.0, 180.0),
    "cycles": (0.0080, 25.0, 60.0),
    "jobs": (0.0010, 200.0, 120.0),
}
CHUNK = 200  # inputs that a worker is given at a time
# polars ends the process where a damaged Parquet file has a length beyond the memory
POLARS_ENDS = re.compile(r'SIGABRT: (thread [^|]*\| )?File "[^"]*/polars/')
START_SECONDS = 600.0  # for a worker to import the package and fit the models of its area
MEMORY = 4 << 30  # bytes that a worker may use beyond what it uses after its start
BUSY = 10  # times as long as allowed, if the worker has not had that much processor time
GRACE = 5.0  # seconds after the end of a run in which an input may be finished
_SHORTEST = 200  # characters of an error that are the same in two inputs with the same fault


class Worker:
    """A process that handles inputs of one area."""

    def __init__(self, area: str) -> None:
        self.area = area
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(TESTS)]),
            "SPINNEY_NUM_THREADS": os.environ.get("SPINNEY_NUM_THREADS", "2"),
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        self.log = ROOT / "build" / "fuzz" / f"worker-{os.getpid()}-{threading.get_ident()}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--worker", area],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        assert self.process.stdout is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.process.stdout, selectors.EVENT_READ)
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._used = 0.0  # processor time of the worker at its last answer
        if self.answer(START_SECONDS) is None:
            reason = self.reason()
            self.close()
            raise RuntimeError(f"The worker of {area} did not start: {reason}")

    def send(self, request: dict[str, Any]) -> None:
        """Send the seeds from `first` to before `end`, or bytes to check."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the answer will be missing
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, seconds: float, end: float = math.inf) -> dict[str, Any] | None:
        """Return the next line of the worker; None if it ended or is too late. Raise a TimeoutError at the end.

        On a busy machine it has more seconds, until it has used as many of the processor.
        """
        assert self.process.stdout is not None
        until, most = time.monotonic() + seconds, time.monotonic() + BUSY * seconds
        while not self._lines:
            if not self._selector.select(max(0.0, min(until, end) - time.monotonic())):
                if time.monotonic() > end:
                    raise TimeoutError
                left = seconds - (self._processor_seconds() - self._used)
                if left <= 0 or time.monotonic() > most:
                    return None
                until = min(most, time.monotonic() + max(1.0, left))
                continue
            if not (block := os.read(self.process.stdout.fileno(), 1 << 16)):
                return None
            *lines, self._rest = (self._rest + block).split(b"\n")
            self._lines.extend(lines)
        found: dict[str, Any] = json.loads(self._lines.popleft())
        self._used = found.pop("used")
        return found

    def _processor_seconds(self) -> float:
        """Return the processor time of the worker; the time that has passed where it is not known."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def reason(self) -> str:
        """Return how a worker ended, or that it did not."""
        try:
            code = self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "it takes too long"
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        text = self.log.read_text(errors="replace").strip()
        lines = text[max(0, text.rfind("Fatal Python error")) :].splitlines()  # earlier lines are of earlier inputs
        places = [line.strip() for line in lines if line.lstrip().startswith(("File ", "thread ", "==", "SUMMARY"))]
        return f"{name}: {' | '.join(places[:4] + lines[-1:])[:400]}"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.log.unlink(missing_ok=True)


def run(plan: dict[str, list[range]], n_processes: int, seconds: float | None) -> dict[str, Any]:
    """Handle all inputs of a plan; return the counts and the faults of each area."""
    todo = {area: deque(chunks) for area, chunks in plan.items()}
    counts: dict[str, Counter[str]] = {area: Counter() for area in plan}
    faults: list[dict[str, Any]] = []
    n_workers: Counter[str | None] = Counter()
    stops: list[str] = []  # of workers that did not start
    until = math.inf if seconds is None else time.monotonic() + seconds
    lock = threading.Lock()

    def chosen(area: str | None) -> str | None:
        """Return the area that a worker handles next: the same again, or the one with most work for each worker."""
        if area is not None and todo[area]:
            return area
        left = {one: len(chunks) * AREAS[one][1] / (1 + n_workers[one]) for one, chunks in todo.items() if chunks}
        return max(left, key=left.__getitem__, default=None)

    def handle(area: str, seeds: range, worker: Worker | None) -> Worker | None:
        """Handle inputs one after the other; return the worker, or None if there is none left."""
        is_busy = False
        for seed in seeds:
            if time.monotonic() > until:
                break
            if worker is None:
                worker = Worker(area)
            if not is_busy:
                worker.send({"first": seed, "end": seeds.stop})
            try:
                found = worker.answer(AREAS[area][2], until + GRACE)
            except TimeoutError:
                break
            is_busy = found is not None
            if found is None:
                reason = worker.reason()
                found = {"outcome": "ended by polars"} if POLARS_ENDS.match(reason) else {"fault": reason}
                worker.close()
                worker = None
            with lock:
                counts[area][found.get("outcome", "FAULT")] += 1
                if "fault" in found:
                    faults.append({"area": area, "seed": seed, "fault": found["fault"]})
                    print(f"{area} {seed}: {found['fault']}", file=sys.stderr, flush=True)
        return worker

    def work() -> None:
        worker: Worker | None = None
        area: str | None = None
        while time.monotonic() < until:
            with lock:
                before, area = area, chosen(area)
                n_workers.update([area])
                n_workers.subtract([before])
                if area is None:
                    break
                seeds = todo[area].popleft()
            if worker is not None and worker.area != area:
                worker.close()
                worker = None
            try:
                worker = handle(area, seeds, worker)
            except RuntimeError as error:
                worker = None
                with lock:
                    todo[area].clear()
                    stops.append(str(error))
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(n_processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    inputs = {area: sum(found.values()) for area, found in counts.items()}
    outcomes = {area: dict(sorted(found.items())) for area, found in counts.items()}
    return {
        "inputs": sum(inputs.values()),
        "by_area": inputs,
        "faults": faults,
        "not_started": stops,
        "outcomes": outcomes,
    }


def planned(areas: list[str], n_inputs: int, first: int) -> dict[str, list[range]]:
    """Divide inputs among areas, and into chunks, the corpus first."""
    known = json.loads(CORPUS.read_text()) if CORPUS.exists() else {}
    total = sum(AREAS[area][0] for area in areas)
    plan = {}
    for area in areas:
        n = max(1, round(n_inputs * AREAS[area][0] / total))
        chunks = [range(at, min(at + CHUNK, first + n)) for at in range(first, first + n, CHUNK)]
        plan[area] = [range(seed, seed + 1) for seed in known.get(area, [])] + chunks
    return plan


# ---- a worker --------------------------------------------------------------------------------------------------------


def area_of(name: str) -> Any:
    """Return the area of a name: outcome(seed), and data(seed) and check(data, seed) if its inputs are bytes."""
    return importlib.import_module(f"fuzzing.{name}").Area()


def serve(name: str) -> None:
    """Handle requests of the parent until its end."""
    import faulthandler
    import resource

    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    area = area_of(name)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if os.name == "posix" else 0
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def send(found: dict[str, Any]) -> None:
        print(json.dumps(found | {"used": time.process_time()}), file=answers)

    send({"ready": name})
    for line in sys.stdin:
        request = json.loads(line)
        if "data" in request:
            send(handled(area.check, base64.b64decode(request["data"]), request["seed"]))
            continue
        for seed in range(request["first"], request["end"]):
            send(handled(area.outcome, seed))


def handled(handle: Callable[..., str], *arguments: Any) -> dict[str, Any]:
    """Return the outcome of one input, or what is wrong with it."""
    try:
        outcome = handle(*arguments)
    except MemoryError:
        return {"outcome": "memory refused"}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"fault": f"{type(error).__name__}: {error}"[:600]}
    return {"outcome": outcome}


# ---- one input -------------------------------------------------------------------------------------------------------


def minimise(name: str, seed: int, seconds: float = 600.0) -> Path:
    """Write the smallest input with the same fault that is found by taking parts out; return its path."""
    area = area_of(name)
    if not hasattr(area, "data"):
        raise SystemExit(f"The inputs of {name} are not bytes. Use --replay {name} {seed}.")
    data, worker, until = area.data(seed), Worker(name), time.monotonic() + seconds

    def fault_of(candidate: bytes) -> str:
        nonlocal worker
        worker.send({"seed": seed, "data": base64.b64encode(candidate).decode()})
        found = worker.answer(AREAS[name][2])
        if found is None:
            found = {"fault": worker.reason().partition(":")[0]}
            worker.close()
            worker = Worker(name)
        return str(found.get("fault", ""))[:_SHORTEST]

    wanted = fault_of(data).partition(":")[0]
    if not wanted:
        raise SystemExit(f"{name} {seed} is no fault.")
    size = len(data) // 2
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            candidate = data[:at] + data[at + size :]
            if candidate and fault_of(candidate).partition(":")[0] == wanted:
                data = candidate
            else:
                at += size
        size //= 2
    worker.close()
    path = ROOT / "build" / "fuzz" / f"{name}-{seed}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes, {wanted}")
    return path


def described() -> dict[str, str]:
    """Return what the inputs were tried with."""
    import spinney

    return {"spinney": spinney.__version__, "python": platform.python_version(), "machine": platform.machine()}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--areas", nargs="+", choices=list(AREAS), default=list(AREAS))
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, help="no further input is started after so many seconds")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="JSON file of the counts")
    parser.add_argument("--replay", nargs=2, metavar=("AREA", "SEED"))
    parser.add_argument("--minimise", nargs=2, metavar=("AREA", "SEED"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        serve(arguments.worker)
        return 0
    sys.path.insert(0, str(TESTS))
    if arguments.replay:
        print(area_of(arguments.replay[0]).outcome(int(arguments.replay[1])))
        return 0
    if arguments.minimise:
        minimise(arguments.minimise[0], int(arguments.minimise[1]))
        return 0
    start = time.monotonic()
    plan = planned(arguments.areas, arguments.inputs, arguments.first)
    report = run(plan, arguments.processes, arguments.seconds)
    report = described() | {"first_seed": arguments.first, "seconds": round(time.monotonic() - start)} | report
    text = json.dumps(report, indent=1)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")
    print(text if arguments.out is None else f"{report['inputs']:,} inputs, {len(report['faults'])} faults")
    return 1 if report["faults"] or report["not_started"] else 0


if __name__ == "__main__":
    sys.exit(main())
