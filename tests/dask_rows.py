"""Frames as Dask collections, for tests; run with a path, it is a client that is killed in the middle of a fit."""

import itertools
import os
import signal
import sys

import numpy as np
import pandas as pd
import spinney

N = 3 * 4096 + 300
FEW = {"n_estimators": 4, "max_leaf_nodes": 8}


def make_frame(n=N, seed=0):
    random = np.random.RandomState(seed)
    frame = pd.DataFrame({"x": random.standard_normal(n), "z": random.standard_normal(n).astype(np.float32)})
    frame["word"] = random.choice(list("abcde"), n)
    frame.loc[n // 2 :, "word"] = random.choice(list("cdefg"), n - n // 2)  # other categories in later partitions
    frame.loc[::7, "z"] = np.nan
    frame["y"] = frame["x"] * 2 + (frame["word"] == "c") + random.standard_normal(n)
    return frame


def partitioned(frame, ends):
    """Make a collection of partitions that end at these rows; some may be empty."""
    import dask.dataframe as dd
    from dask import delayed

    cuts = [0, *ends, len(frame)]
    parts = [delayed(frame.iloc[a:b]) for a, b in itertools.pairwise(cuts)]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


def fit_on_two_workers(path, callback=None):
    import distributed

    frame = make_frame()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        model = spinney.GradientBoostingRegressor(**FEW | {"n_estimators": 8}, callbacks=callback)
        return model.fit(partitioned(frame, [5000, 9000]), "y", checkpoint=path)


if __name__ == "__main__":  # a client that is killed
    fit_on_two_workers(sys.argv[1], lambda done: done["round"] == 5 and os.kill(os.getpid(), signal.SIGKILL))


def frame_of(path, part):
    """Return a third of the rows, of which one column depends on a file."""
    frame = make_frame().iloc[part * N // 3 : (part + 1) * N // 3]
    return frame.assign(changed=np.arange(len(frame)) * float(path.read_text()))
