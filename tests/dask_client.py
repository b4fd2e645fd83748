"""A client of a Dask cluster that begins a long fit; run with the address of the scheduler and what to fit."""

import sys

import spinney
from dask_rows import make_frame, partitioned

LONG = {
    "rows shared out": spinney.GradientBoostingRegressor(n_estimators=100_000, max_leaf_nodes=8, verbose=1),
    "one worker": spinney.GradientBoostingRegressor(n_estimators=100_000, growth="symmetric", max_depth=3, verbose=1),
    "trees shared out": spinney.RandomForestRegressor(100_000, max_leaf_nodes=8, verbose=1),
}


def say(progress):
    print("begun", flush=True)


if __name__ == "__main__":
    import distributed

    with distributed.Client(sys.argv[1]):
        model = LONG[sys.argv[2]]
        if hasattr(model, "callbacks"):
            model.set_params(callbacks=say)
        model.fit(partitioned(make_frame(9000), [5000]), "y")
