"""A model behind a web server: time until the first answer, memory, and what a request takes.

Usage: ``python benchmarks/serving.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
The server is examples/serve.py, of the standard library, in a separate process; the peer is a process that only imports
scikit-learn, as one that unpickles its models has to.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from program import command_line, run
from timing import Row

ROOT = Path(__file__).resolve().parent.parent


def model_file(folder: str, options: Any) -> tuple[str, bytes]:
    """Save a model of 300 trees, and return a request of one row."""
    import spinney

    X, y = spinney.datasets.load_penguins()
    path = f"{folder}/model.spinney"
    rounds = 10 if options.quick else 100
    spinney.GradientBoostingClassifier(n_estimators=rounds, max_leaf_nodes=31, min_samples_leaf=1).fit(X, y).save(path)
    row = {name: None if value != value else value for name, value in X.iloc[3].to_dict().items()}
    return path, json.dumps({"rows": [row]}).encode()


@contextmanager
def server(path: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the service on a free port."""
    command = [sys.executable, str(ROOT / "examples" / "serve.py"), path, "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().rsplit(":", 1)[1].split("/")[0])
    finally:
        process.terminate()
        process.wait()


def ask(connection: http.client.HTTPConnection, request: bytes) -> dict[str, Any]:
    connection.request("POST", "/predict", request)
    found: dict[str, Any] = json.loads(connection.getresponse().read())
    return found


def megabytes(pid: int) -> float:
    """Memory of a process that no other shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def sklearn_alone() -> tuple[float, float]:
    """Seconds and memory of a process that imports scikit-learn's ensembles."""
    code = "import sklearn.ensemble, sys; print('ready', flush=True); sys.stdin.read()"
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    found = time.perf_counter() - start, megabytes(process.pid)
    process.terminate()
    process.wait()
    return found


def start_and_memory(options: Any) -> Iterator[Row]:
    """From the start of Python to the first answer, and memory after it."""
    seconds, memory, others = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path, request = model_file(folder, options)
        for _ in range(options.rounds):
            start = time.perf_counter()
            with server(path) as (process, port):
                assert "predictions" in ask(http.client.HTTPConnection("127.0.0.1", port), request)
                seconds.append(time.perf_counter() - start)
                memory.append(megabytes(process.pid))
            others.append(sklearn_alone())
        size = os.path.getsize(path) / 1024
    theirs, held = (float(np.median(column)) for column in zip(*others, strict=True))
    mine = float(np.median(seconds)), float(np.median(memory))
    evidence = f"file of {size:.0f} KB | only imports scikit-learn"
    yield Row("first answer", mine[0], theirs, ratio=theirs / mine[0], evidence=evidence, rounds=seconds)
    yield Row("memory", mine[1], held, "MB", ratio=held / mine[1], evidence=evidence, rounds=memory)


def requests(options: Any) -> Iterator[Row]:
    """One row a request, one connection: the whole request, and the prediction alone."""
    import spinney

    with tempfile.TemporaryDirectory() as folder:
        path, request = model_file(folder, options)
        with server(path) as (_, port):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            for _ in range(100):
                ask(connection, request)
            spent = []
            for _ in range(200 if options.quick else 3_000):
                start = time.perf_counter()
                ask(connection, request)
                spent.append(time.perf_counter() - start)
        model, row = spinney.load_predictor(path), json.loads(request)["rows"][0]
        model.predict_one(row)
        alone = []
        for _ in range(3_000):
            start = time.perf_counter()
            model.predict_one(row)
            alone.append(time.perf_counter() - start)
    for name, found in (("a request", spent), ("its prediction", alone)):
        middle, worst = np.percentile(found, [50, 99]) * 1e6
        yield Row(name, float(middle), unit="us", evidence=f"99 of 100 within {worst:.0f} us", rounds=None)


WORKLOADS = {"start_and_memory": start_and_memory, "requests": requests}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
