"""Boosters whose rows are partitioned: each sends its requests to the blocks that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._cluster.blocks import Answers, RowBlocks

Floats = NDArray[np.float64]
_GRADIENTS, _KEEP = _engine.request("gradients"), _engine.request("keep_scores")


@dataclass(frozen=True)
class BoosterInputs:
    """What a booster learns from, of all rows or of those of one block.

    Attributes
    ----------
    target : ndarray of shape (n_parts, n_rows)
    weight, held_weight : ndarray of shape (n_rows,), or None
        Of the rows that are learned from, and of those held out.
    scores : ndarray of shape (n_scores, 1) or (n_scores, n_rows)
        Before the first tree; the same for all rows, or one for each.
    trees : list of Tree
        Of rounds that are done already.
    options : dict
    scales : tuple
        Number of all rows, and what the engine scales their gradients by.
    first : int
        Number of the first row.
    """

    target: Floats
    weight: Floats | None
    held_weight: Floats | None
    scores: Floats
    trees: list[_engine.Tree]
    options: dict[str, Any]
    scales: tuple[int, float, float]
    first: int = 0

    def of_rows(self, begin: int, end: int) -> BoosterInputs:
        """Return the same of some rows."""
        return replace(
            self,
            target=np.ascontiguousarray(self.target[:, begin:end]),
            weight=rows_of(self.weight, begin, end),
            held_weight=rows_of(self.held_weight, begin, end),
            scores=self.scores if self.scores.shape[1] == 1 else np.ascontiguousarray(self.scores[:, begin:end]),
            first=begin,
        )


def rows_of(numbers: Floats | None, begin: int, end: int) -> Floats | None:
    """Return the numbers of some rows."""
    return None if numbers is None else np.ascontiguousarray(numbers[begin:end])


@dataclass
class BoosterChannel:
    """Requests of one booster to the blocks of its rows; they begin with its tag.

    Attributes
    ----------
    blocks : RowBlocks
    tag : bytes
    inputs : BoosterInputs
        Of all rows.
    done : list of bytes
        Requests that bring a new block to where the others are.
    """

    blocks: RowBlocks
    tag: bytes
    inputs: BoosterInputs
    done: list[bytes] = field(default_factory=list)

    def ask(self, request: bytes) -> Answers:
        """Return the answers of all blocks to a request that changes nothing."""
        found = self._exchange(request)
        self.blocks.end_round()
        return found

    def _exchange(self, request: bytes) -> Answers:
        try:
            self.send(request)
            return self.receive()
        except BaseException:
            self.blocks.drop()
            raise

    def send(self, request: bytes) -> None:
        """Send a request to all blocks."""
        self.blocks.send(self.tag + request)

    def receive(self) -> Answers:
        """Wait for the answers to the first request whose answers were not received yet."""
        return self.blocks.receive()

    def change(self, request: bytes) -> None:
        """Send all blocks a request that changes them, and them alone: it is part of the history."""
        self._exchange(request)
        self.done.append(request)
        self.blocks.end_round()

    def history(self) -> list[bytes]:
        """Return all requests that a new block is to answer."""
        return [self.tag + request for request in (*self.done, _GRADIENTS)]

    def keep_scores(self) -> None:
        """Have the blocks note the scores of the rows held out, in the place of those noted before."""
        self.done = [request for request in self.done if request != _KEEP]
        self.change(_KEEP)

    def scores(self, which: str) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        n_scores = len(self.inputs.scores)
        found = [np.frombuffer(answer).reshape(n_scores, -1) for answer in self.ask(_engine.request(which))]
        return np.concatenate(found, axis=1)


class DistributedBooster:
    """A booster whose rows are partitioned, as `Member` takes one.

    Parameters
    ----------
    engine : PartitionedBoosting
    channel : BoosterChannel
        To the rows that are learned from.
    validation : BoosterChannel or None
        To the validation set, if it is of another table.
    """

    n_dropped: Sequence[int] = ()

    def __init__(
        self, engine: _engine.PartitionedBoosting, channel: BoosterChannel, validation: BoosterChannel | None
    ) -> None:
        self._engine = engine
        self._channel = channel
        self._validation = validation
        self._n_known = 0  # requests of the engine's history

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return self._engine.n_rounds

    def advance(self) -> None:
        """Add a round."""
        try:
            self._engine.advance(self._channel)
        except BaseException:
            self._channel.blocks.drop()
            raise
        added = self._engine.history(self._n_known)
        self._n_known += len(added)
        self._channel.done += added
        self._channel.blocks.end_round()
        if self._validation is not None:
            for request in added:
                self._validation.change(request)

    def trees(
        self,
        first: int,
        factors: Sequence[float] = (),
        statistics: Sequence[object] = (),
        n_rounds: int | None = None,
    ) -> list[_engine.Tree]:
        """Return copies of the trees, of the first rounds if their number is given."""
        assert not statistics
        found = self._engine.trees(first, list(factors))
        return found if n_rounds is None else found[: n_rounds * len(self._channel.inputs.scores) - first]

    def training_loss(self) -> float:
        """Mean loss of the rows learned from."""
        return self._engine.losses[0]

    def held_out_loss(self) -> float:
        """Mean loss of the rows held out."""
        if self._validation is None:
            return self._engine.losses[1]
        return _engine.held_out_loss(list(self._validation.ask(_GRADIENTS)))

    def out_of_bag_loss(self) -> tuple[float, float]:
        """Mean loss of rows that the last round has not drawn, before and after it."""
        return self._engine.losses[2:]

    @property
    def _held_out(self) -> BoosterChannel:
        return self._validation or self._channel

    def held_out_scores(self) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        return self._held_out.scores("held_scores")

    def keep_scores(self) -> None:
        """Note the scores of the rows held out where they are: no round was better."""
        self._held_out.keep_scores()

    def best_scores(self) -> Floats:
        """Scores that were noted last, (n_scores, n_rows)."""
        return self._held_out.scores("kept_scores")
