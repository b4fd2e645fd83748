"""Boosters whose rows are elsewhere: each has a channel of its own to the pieces that holders have made for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]
_STATE, _KEEP = _engine.question("gradients"), _engine.question("keep_scores")


@dataclass(frozen=True)
class Cut:
    """What the pieces of one booster are made of.

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
        Of all rows.
    """

    target: Floats
    weight: Floats | None
    held_weight: Floats | None
    scores: Floats
    trees: list[_engine.Tree]
    options: dict[str, Any]
    scales: tuple[Any, ...]

    def of_rows(self, begin: int, end: int) -> dict[str, Any]:
        """Return what a piece of some rows is made of."""
        n_all, *scales = self.scales
        return {
            "target": np.ascontiguousarray(self.target[:, begin:end]),
            "weight": rows_of(self.weight, (begin, end)),
            "held_weight": rows_of(self.held_weight, (begin, end)),
            "start": self.scores if self.scores.shape[1] == 1 else np.ascontiguousarray(self.scores[:, begin:end]),
            "place": (begin, n_all, *scales),
        }


def rows_of(numbers: Floats | None, ends: tuple[int, int]) -> Floats | None:
    """Return the numbers of some rows."""
    return None if numbers is None else np.ascontiguousarray(numbers[ends[0] : ends[1]])


@dataclass
class Channel:
    """Questions of one booster to its pieces, which are known by a tag.

    Attributes
    ----------
    carrier : Carrier
    tag : bytes
    cut : Cut
    said : list of bytes
        What brings a new piece to where the others are.
    """

    carrier: Any
    tag: bytes
    cut: Cut
    said: list[bytes] = field(default_factory=list)

    def ask(self, question: bytes) -> list[bytes]:
        """Ask all pieces."""
        try:
            self.send(question)
            return self.receive()
        except BaseException:
            self.carrier.drop()
            raise

    def send(self, question: bytes) -> None:
        """Send a question to all pieces."""
        self.carrier.send(self.tag + question)

    def receive(self) -> list[bytes]:
        """Wait for the answers to the first question that was sent and not received yet."""
        found: list[bytes] = self.carrier.receive()
        return found

    def tell(self, question: bytes) -> list[bytes]:
        """Ask all pieces what changes them, and them alone: it is part of the history."""
        found = self.ask(question)
        self.said.append(question)
        self.carrier.end_round()
        return found

    def history(self) -> list[bytes]:
        """Return all that a new piece is to be asked."""
        return [self.tag + question for question in (*self.said, _STATE)]

    def keep_scores(self) -> None:
        """Have the pieces note the scores of the rows held out, in the place of those noted before."""
        self.said = [question for question in self.said if question != _KEEP]
        self.tell(_KEEP)

    def scores(self, which: str) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        n_scores = len(self.cut.scores)
        found = [np.frombuffer(answer).reshape(n_scores, -1) for answer in self.ask(_engine.question(which))]
        self.carrier.end_round()
        return np.concatenate(found, axis=1)


class DealtBooster:
    """A booster whose rows are elsewhere, as `Member` takes one.

    Parameters
    ----------
    engine : DealtBoosting
    channel : Channel
        To the rows that are learned from.
    judges : Channel or None
        To those that it is judged by, if these are of another table.
    """

    n_dropped: Sequence[int] = ()

    def __init__(self, engine: _engine.DealtBoosting, channel: Channel, judges: Channel | None) -> None:
        self._engine = engine
        self._channel = channel
        self._judges = judges
        self._n_said = 0

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return self._engine.n_rounds

    def advance(self) -> None:
        """Add a round."""
        try:
            self._engine.advance(self._channel)
        except BaseException:
            self._channel.carrier.drop()
            raise
        added = self._engine.history(self._n_said)
        self._n_said += len(added)
        self._channel.said += added
        self._channel.carrier.end_round()
        if self._judges is not None:
            for question in added:
                self._judges.tell(question)

    def trees(
        self,
        first: int,
        factors: Sequence[float] = (),
        statistics: Sequence[Any] = (),
        n_rounds: int | None = None,
    ) -> list[_engine.Tree]:
        """Return copies of the trees, of the first rounds if their number is given."""
        assert not statistics
        found = self._engine.trees(first, list(factors))
        return found if n_rounds is None else found[: n_rounds * len(self._channel.cut.scores) - first]

    def training_loss(self) -> float:
        """Mean loss of the rows learned from."""
        return self._engine.losses[0]

    def held_out_loss(self) -> float:
        """Mean loss of the rows held out."""
        if self._judges is None:
            return self._engine.losses[1]
        said = self._judges.ask(_STATE)
        self._judges.carrier.end_round()
        return _engine.held_out_loss(said)

    def out_of_bag_loss(self) -> tuple[float, float]:
        """Mean loss of rows that the last round has not drawn, before and after it."""
        return self._engine.losses[2:]

    def held_out_scores(self) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        return (self._judges or self._channel).scores("held_scores")

    def keep_scores(self) -> None:
        """Note the scores of the rows held out where they are: no round was better."""
        (self._judges or self._channel).keep_scores()

    def best_scores(self) -> Floats:
        """Scores that were noted last, (n_scores, n_rows)."""
        return (self._judges or self._channel).scores("kept_scores")
