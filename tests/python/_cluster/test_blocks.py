"""Partitioned rows give the model, bit for bit, that they give in one place."""

import itertools
import pickle
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import spinney
import spinney._engine as _engine
from hypothesis import given
from hypothesis import strategies as st
from spinney._boosting.distributed import fit as partitioned_table
from spinney._boosting.distributed.booster import BlockActor
from spinney._boosting.distributed.fit import PartitionedTable
from spinney._boosting.options.compatibility import why_not_partitioned
from spinney._boosting.settings import BoostingSettings
from spinney._cluster.actor import Actor, rows_between
from spinney._cluster.blocks import CHUNK_ROWS, LocalBlocks, aligned_ranges, slices_of
from spinney._cluster.single_worker import SingleWorkerFit
from spinney._estimator.fit_inputs import FitInputs
from sweep import examples

N = 3 * CHUNK_ROWS + 517


def make_table(seed=0, n=N):
    random = np.random.RandomState(seed)
    frame = pd.DataFrame({f"x{j}": random.standard_normal(n) for j in range(3)})
    frame["few"] = random.randint(0, 4, n)
    frame["whole"] = random.randint(0, 500, n).astype(np.int32)
    frame["gaps"] = np.where(random.random_sample(n) < 0.2, np.nan, random.standard_normal(n)).astype(np.float32)
    frame["word"] = pd.Categorical.from_codes(random.randint(-1, 12, n), [f"w{i}" for i in range(12)])
    signal = frame["x0"] + (frame["word"].cat.codes % 3) + frame["gaps"].fillna(1.0) * frame["few"]
    return frame, np.asarray(signal + random.standard_normal(n))


def partitioned(frame, ends, ranges):
    """Partition a frame at these rows, and hold its rows in these ranges of whole chunks."""
    cuts = [0, *sorted(ends), frame.shape[0]]
    parts = [rows_between(frame, a, b) for a, b in itertools.pairwise(cuts)]
    actors = []
    for begin, end in ranges:
        some = slices_of([part.shape[0] for part in parts], begin, end)
        actors.append(BlockActor(1, list(some.values()), *(parts[p] for p in some)))
    names = list(frame.columns) if hasattr(frame, "columns") else None
    return PartitionedTable(LocalBlocks(actors, ranges), frame.shape[1], names)


def in_blocks(frame):
    return partitioned(frame, [100, 5000, 5000], aligned_ranges(frame.shape[0], 3))


def check_same(model, frame, y, **more):
    here = model.fit(frame, y, **more)
    expected = here.fingerprint(), here.train_score_.tolist()
    there = spinney_clone(model).fit(in_blocks(frame), y, **more)
    assert (there.fingerprint(), there.train_score_.tolist()) == expected
    return here, there


def spinney_clone(model):
    return type(model)(**model.get_params())


@pytest.fixture
def much_work(monkeypatch):
    """Have little work taken for much: two requests are on their way."""
    monkeypatch.setattr(partitioned_table, "WORK_OF_MESSAGE", 0.0)


def splits_asked(request):
    """Return how many counts of rows by code, and how many splits, the first batch of a request asks for."""

    def number(at, size):
        return int.from_bytes(request[at : at + size], sys.byteorder)

    n_splits, at = number(10, 4), 14
    for _ in range(n_splits):
        at += 18 + 8 + 4 * number(at + 18, 8)  # with the codes that go left
    columns = [number(at + 8 + 8 * i + 4, 4) for i in range(number(at, 8))]
    return sum(column != 2**32 - 1 for column in columns), n_splits


@pytest.mark.parametrize("least", [20, 700])  # of 700, leaves are counted: their hessians suggest more rows
@pytest.mark.usefixtures("much_work")
def test_a_second_request_is_sent_before_the_first_is_answered(monkeypatch, least):
    under_way, left_waiting, counted = [0], [], []
    send, receive = LocalBlocks.send, LocalBlocks.receive

    def count(self, request):
        under_way[0] += 1
        assert under_way[0] <= 2
        counted.append(request[1] == 2 and splits_asked(request)[0] > 0)
        send(self, request)

    def count_down(self):
        under_way[0] -= 1
        left_waiting.append(under_way[0] == 0)
        return receive(self)

    monkeypatch.setattr(LocalBlocks, "send", count)
    monkeypatch.setattr(LocalBlocks, "receive", count_down)
    frame, y = make_table()
    check_same(spinney.GradientBoostingClassifier(n_estimators=5, min_samples_leaf=least), frame, y > np.median(y))
    assert sum(left_waiting) < 0.5 * len(left_waiting)
    assert sum(left_waiting) < 8 * 5
    assert any(counted) == (least == 700)


def test_little_work_is_asked_for_in_one_request(monkeypatch):
    asked = []
    send = LocalBlocks.send

    def count(self, request):
        assert not self._sent
        asked.append(request[1])
        send(self, request)

    monkeypatch.setattr(LocalBlocks, "send", count)
    frame, y = make_table()
    check_same(spinney.GradientBoostingRegressor(n_estimators=5), frame, y)
    assert asked.count(2) < 10 * 5  # divisions
    assert asked.count(3) < 5  # sums of leaves: most are asked for with the last divisions


def test_few_divisions_are_made_in_vain(monkeypatch):
    asked, send = [], LocalBlocks.send

    def count(self, request):
        if request[1] == 2:
            asked.append(sum(splits_asked(request)))
        send(self, request)

    monkeypatch.setattr(LocalBlocks, "send", count)
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.standard_normal((40_000, 8)), columns=list("abcdefgh"))
    score = frame["a"] + frame["b"] * frame["c"] + frame["d"].abs() + random.standard_normal(len(frame))
    check_same(spinney.GradientBoostingClassifier(n_estimators=10), frame, score > 0.8)
    assert sum(asked) < 1.15 * 30 * 10


FEW = {"n_estimators": 4, "max_leaf_nodes": 12}


@pytest.mark.parametrize("at", [150, 151])
@pytest.mark.usefixtures("much_work")
def test_answers_that_an_interruption_left_are_no_answers_to_the_next_request(monkeypatch, at):
    frame, y = make_table(n=30_000)  # from here on it holds folds out where they lie
    frame = frame[["x0", "x1", "x2"]]
    n_received = itertools.count(1)
    receive = LocalBlocks.receive

    def interrupted(blocks):
        if next(n_received) == at:
            raise KeyboardInterrupt
        return receive(blocks)

    monkeypatch.setattr(LocalBlocks, "receive", interrupted)
    model = spinney.GradientBoostingRegressor(max_leaf_nodes=8, keep_interrupted=True, random_state=0)
    with pytest.warns(UserWarning, match="these are kept"):
        model.fit(in_blocks(frame), y)
    assert next(n_received) > at + 1  # it asked on, for what it knows of the rows held out
    assert np.isfinite(model.predict(frame)).all()


def test_rows_are_partitioned_for_losses_that_are_sums_over_rows():
    inputs = FitInputs(None, None)
    for loss in ("log_loss", "exponential", "focal", "smooth_hinge"):
        assert (
            why_not_partitioned(BoostingSettings.of(spinney.GradientBoostingClassifier(**FEW, loss=loss)), inputs)
            is None
        )
    assert why_not_partitioned(BoostingSettings.of(spinney.GradientBoostingRegressor(**FEW)), inputs) is None
    medians = BoostingSettings.of(spinney.GradientBoostingRegressor(loss="absolute_error"))
    assert "needs all rows of a leaf" in why_not_partitioned(medians, inputs)


def test_a_worker_that_is_closed_keeps_no_actor():
    """One that is a thread of this process goes on to be there, and its fits would."""
    actor = Actor()
    assert actor.is_alive()
    actor._key = "mine"
    actor._worker = SimpleNamespace(
        state=SimpleNamespace(actors={"mine": actor}), status=SimpleNamespace(name="running")
    )
    assert actor.is_alive()
    actor._worker.status = SimpleNamespace(name="closed")
    assert not actor.is_alive()


def test_a_model_that_one_worker_fits_can_be_sent():
    frame, y = make_table(n=300)
    fit = SingleWorkerFit(spinney.GradientBoostingRegressor(n_estimators=2), 1, None, frame)
    status, model = fit.begin(FitInputs(None, y), False)
    while status == "busy":
        status, model = fit.next_event()
    assert status == "done"
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"growth": "depth", "max_depth": 3},
        {"subsample": 0.6, "max_features": 0.5, "feature_sampling": 0.8, "random_state": 3},
        {"min_samples_leaf": 900, "max_bins": 300},
        {"monotonic_cst": {"x0": 1}, "interaction_cst": [["x0", "word"], ["gaps", "few"]]},
        {"max_depth": 2, "loss": "normal"},
    ],
)
def test_regression_models_are_identical(options):
    frame, y = make_table()
    check_same(spinney.GradientBoostingRegressor(**FEW, **options), frame, y)


def test_classes_weights_and_rows_held_out():
    frame, y = make_table(1)
    weight = np.random.RandomState(5).exponential(size=len(y)) * (np.arange(len(y)) % 7 > 0)
    for labels, options in [
        (y > 1, {"early_stopping": True, "random_state": 1}),
        (np.digitize(y, [0.0, 2.0]), {"subsample": 0.7, "random_state": 2}),
        (np.digitize(y, [0.0, 2.0]), {"class_weight": "balanced", "early_stopping": True, "random_state": 1}),
    ]:
        here, there = check_same(
            spinney.GradientBoostingClassifier(**FEW, **options), frame, labels, sample_weight=weight
        )
        for name in ("validation_score_", "oob_scores_"):
            if hasattr(here, name):
                assert np.array_equal(getattr(here, name), getattr(there, name))


def test_validation_sets_of_the_caller():
    frame, y = make_table(7)
    later, y_later = make_table(8, n=9000)
    later.loc[::5, "x1"] = np.nan  # which no row that is learned from lacks
    offset, offset_later = np.sin(y), np.sin(y_later)
    beside = {"offset": offset, "y_val": y_later, "sample_weight_val": y_later**2, "offset_val": offset_later}
    for model, learned, known in [
        (spinney.GradientBoostingRegressor(**FEW, early_stopping=True), y, beside),
        (spinney.GradientBoostingClassifier(**FEW, scoring="roc_auc"), y > 1, beside | {"y_val": y_later > 1}),
    ]:
        here = model.fit(frame, learned, X_val=later, **known)
        for where in (later, in_blocks(later)):
            there = spinney_clone(model).fit(in_blocks(frame), learned, X_val=where, **known)
            assert there.fingerprint() == here.fingerprint()
            assert there.validation_score_.tolist() == here.validation_score_.tolist()


def test_groups_times_and_metrics():
    frame, y = make_table(9)
    for options, more in [
        ({"early_stopping": True, "random_state": 0}, {"groups": frame["whole"]}),
        ({"early_stopping": True, "random_state": 0}, {"time": np.arange(len(y)) % 1000}),
        ({"early_stopping": True, "scoring": "neg_mean_absolute_error", "random_state": 0}, {}),
    ]:
        here, there = check_same(spinney.GradientBoostingRegressor(**FEW, **options), frame, y, **more)
        assert here.validation_score_.tolist() == there.validation_score_.tolist()


@pytest.mark.slow
def test_folds_of_partitioned_rows():
    frame, y = make_table(10, n=21_000)
    frame["word"] = frame["word"].cat.codes.astype(str).str[:1].where(frame["few"] > 0)  # few categories
    few = {"learning_rate": 0.5, "max_leaf_nodes": 4, "n_iter_no_change": 2, "tol": 0.01, "random_state": 0}
    for model, learned in [
        (spinney.GradientBoostingRegressor(**few), y),
        (spinney.GradientBoostingClassifier(**few), np.digitize(y, [0.0, 2.0])),
    ]:
        here, there = check_same(model, frame, learned, sample_weight=1 + np.arange(len(y)) % 3)
        assert here.validation_score_.tolist() == there.validation_score_.tolist()
        assert np.array_equal(here._calibration.predicted, there._calibration.predicted)
    with pytest.raises(ValueError, match="Some rows have weight 0"):
        model.fit(in_blocks(frame), learned, sample_weight=np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="reads all rows of a table of this size"):
        model.fit(in_blocks(frame[:9000]), learned[:9000])


def test_few_rows_of_large_weight():
    frame, y = make_table(2)
    weight = np.ones(len(y))
    weight[::3000] = 1e6
    check_same(spinney.GradientBoostingRegressor(**FEW, min_samples_leaf=50), frame, y, sample_weight=weight)


def test_an_array_of_numbers():
    random = np.random.RandomState(0)
    X = random.standard_normal((N, 5)).astype(np.float32)
    X[:, 3] = np.nan
    check_same(spinney.GradientBoostingRegressor(**FEW), X, X[:, 0] * X[:, 1])


@examples(5)
@given(st.data())
def test_any_partitioning_gives_identical_models(data):
    frame, y = make_table(3)
    labels = np.digitize(y, [0.0, 2.0])
    weight = np.random.RandomState(6).random_sample(len(y))
    model = spinney.GradientBoostingClassifier(n_estimators=2, max_leaf_nodes=8, subsample=0.8, random_state=0)
    expected = model.fit(frame, labels, sample_weight=weight).fingerprint()
    partitions = data.draw(st.lists(st.integers(0, len(y)), max_size=6))
    cuts = data.draw(st.sets(st.integers(1, len(y) // CHUNK_ROWS)))
    ends = [CHUNK_ROWS * c for c in sorted(cuts)]
    ranges = list(zip([0, *ends], [*ends, len(y)], strict=True))
    table = partitioned(frame, partitions, ranges)
    assert spinney_clone(model).fit(table, labels, sample_weight=weight).fingerprint() == expected


def test_partitions_that_differ_in_kind_are_refused():
    frame, y = make_table(4)
    mixed = frame.assign(few=frame["few"].astype(object))
    mixed.loc[5000:, "few"] = "three"
    with pytest.raises(TypeError, match="'few' holds"):
        spinney.GradientBoostingRegressor(**FEW).fit(in_blocks(mixed), y)


def test_a_checkpoint_is_resumed(tmp_path):
    frame, y = make_table(2)
    labels = np.digitize(y, [0, 1.5])
    options = FEW | {"subsample": 0.7, "random_state": 1, "early_stopping": True}
    whole = spinney.GradientBoostingClassifier(**options).fit(frame, labels)
    warm = spinney.GradientBoostingClassifier(**options | {"n_estimators": 2}, warm_start=True)
    warm.fit(in_blocks(frame), labels).set_params(n_estimators=4).fit(in_blocks(frame), labels)
    assert warm.fingerprint() == whole.fingerprint()
    assert warm.validation_score_.tolist() == whole.validation_score_.tolist()

    def die(progress):
        if progress["round"] == 2:
            raise ZeroDivisionError

    there = spinney.GradientBoostingClassifier(**options, callbacks=die)
    path = tmp_path / "rounds"
    with pytest.raises(ZeroDivisionError):
        there.fit(in_blocks(frame), labels, checkpoint=path)
    with pytest.raises(ValueError, match="another X"):
        there.fit(in_blocks(frame.assign(x0=frame["x1"])), labels, checkpoint=path)
    there.set_params(callbacks=None).fit(frame, labels, checkpoint=path)  # begun there, done here
    assert there.fingerprint() == whole.fingerprint()


def test_dates_and_sparse_rows():
    random = np.random.RandomState(0)
    frame = pd.DataFrame({"day": np.datetime64("2020-01-01") + random.randint(0, 900, N).astype("timedelta64[D]")})
    frame["yes"] = random.random_sample(N) < 0.5
    frame.loc[::9, "day"] = pd.NaT
    few = {"n_estimators": 2, "max_leaf_nodes": 6}
    check_same(spinney.GradientBoostingRegressor(**few), frame, frame["day"].dt.month.fillna(3) + frame["yes"])
    rows = scipy.sparse.random(N, 4, density=0.3, format="csr", random_state=0)
    check_same(spinney.GradientBoostingRegressor(**few), rows, rows[:, [0]].toarray().ravel())


@pytest.mark.slow
def test_other_threads_run_while_a_partition_is_made(monkeypatch):
    """A worker reports to the scheduler that it is alive in the meantime."""
    made, partition = [], _engine.Partition
    monkeypatch.setattr(
        _engine, "Partition", lambda coded, **given: made.append((coded, given)) or partition(coded, **given)
    )
    x = np.random.RandomState(0).standard_normal((4_000_000, 1))
    spinney.GradientBoostingRegressor(n_estimators=1, max_leaf_nodes=2).fit(in_blocks(x), x[:, 0])
    coded, given = made[0]

    def is_joined():
        """Whether another thread ran between the first and the last moment of the call."""
        ticks, is_over = [], threading.Event()

        def tick():
            while not is_over.wait(0.0005):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        partition(coded, **given)
        ended = time.monotonic()
        is_over.set()
        thread.join()
        return any(began < t < ended for t in ticks)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(60)  # Python itself hands over to nobody in that time: only the call can
    try:
        assert any(is_joined() for _ in range(200))
    finally:
        sys.setswitchinterval(usual)


SPLIT, ADD = 2, 4  # the kinds of requests, after the tag of the booster


def damaged_splits(request):
    """Yield the request with a node, a column, a code or a number of codes of the first split's that cannot be."""
    at = 1 + 1 + 4 + 4 + 4  # the first split, after its batch: node, left, column, cut, two flags, codes that go left
    n_codes = int.from_bytes(request[at + 18 : at + 26], sys.byteorder)
    places = [at, at + 4, at + 8, *(at + 26 + 4 * i for i in range(n_codes))]
    if n_codes == 0:
        places.append(at + 12)
    for place in places:
        yield request[:place] + b"\xff\xff\xff\x7f" + request[place + 4 :]
    yield request[: at + 18] + b"\xff" * 8 + request[at + 26 :]


def damaged_trees(request):
    """Yield the request with entries of the first tree's root that cannot be, and with runs that are too short."""
    runs, at = {}, 1 + 1 + 1 + 4 + 4
    for name, size in [("column", 4), ("right", 4), ("flags", 1), ("set", 4), ("sets", 4), ("value", 8), ("cut", 4)]:
        n = int.from_bytes(request[at : at + 8], sys.byteorder)
        runs[name] = at, n, size
        at += 8 + n * size
    assert request[runs["flags"][0] + 8] & 2, "the root is split on categories"
    for name, (at, n, size) in runs.items():
        if name not in ("value", "cut"):  # which may be anything
            yield request[: at + 8] + b"\xff\xff\xff\x7f"[-size:] + request[at + 8 + size :]
        if name != "sets":
            yield request[:at] + (n - 1).to_bytes(8, sys.byteorder) + request[at + 8 + size :]


@pytest.mark.parametrize(("kind", "damaged"), [(SPLIT, damaged_splits), (ADD, damaged_trees)])
def test_damaged_requests_are_refused(monkeypatch, kind, damaged):
    frame = make_table(n=9000)[0][["word", "whole"]]
    y = np.asarray(5 * (frame["word"].cat.codes % 3) + frame["whole"] // 100 % 2, dtype=float)
    answer, n_refused = BlockActor.answer, 0

    def damaged_first(self, request):
        nonlocal n_refused
        for other in damaged(request) if request[1] == kind else ():
            with pytest.raises(ValueError, match=r"do not exist|is truncated"):
                answer(self, other)
            n_refused += 1
        return answer(self, request)

    monkeypatch.setattr(BlockActor, "answer", damaged_first)
    check_same(spinney.GradientBoostingRegressor(n_estimators=2, max_bins=400, random_state=0), frame, y)
    assert n_refused > 5


def test_answers_of_more_rows_than_there_are_are_refused(monkeypatch):
    frame, y = make_table(n=9000)
    answer = BlockActor.answer

    def too_many(self, request):
        found = answer(self, request)
        return b"\xff" * 7 + b"\x0f" + found[8:] if request[1] == SPLIT else found  # of the rows that go left

    monkeypatch.setattr(BlockActor, "answer", too_many)
    with pytest.raises(ValueError, match="inconsistent numbers of rows"):
        spinney.GradientBoostingRegressor(n_estimators=2).fit(in_blocks(frame), y)
