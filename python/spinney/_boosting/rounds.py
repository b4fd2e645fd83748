"""Round after round: learning curves, early stopping, progress, callbacks, interruption."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

import spinney._engine as _engine
from spinney._boosting.rows import LearningRows
from spinney._data.pick import pick_table
from spinney._fitted.boosting import FittedBoosting
from spinney._words.warn import warn

Floats = NDArray[np.float64]
_PATIENCE = 10  # rounds without an improvement before early stopping ends the fit, unless the user says


class HeldOutScore:
    """A metric on the held-out rows, as a loss: smaller is better."""

    def __init__(
        self,
        model: Any,
        view: FittedBoosting,
        held_out: LearningRows,
        learned: dict[str, Any],
        base: Floats | None = None,
        encode: Callable[[Any], _engine.Table] | None = None,
    ) -> None:
        self._model = model
        self._view = view
        self._learned = learned
        self._encode = encode
        self._scorer = get_scorer(model.scoring) if isinstance(model.scoring, str) else model.scoring
        weight = held_out.weight
        rows = np.arange(len(held_out.target)) if weight is None else np.flatnonzero(weight > 0)
        self._rows = rows
        self._base = None if base is None else base.T[rows]
        self._has_offset = held_out.offset is not None
        # a metric by name asks for predictions alone; any other may read the rows, as the caller gave them
        unread = isinstance(model.scoring, str) or held_out.given is None
        self._X = np.zeros((len(rows), 1)) if unread else pick_table(held_out.given).take(rows)
        target = held_out.target[rows]
        classes = learned.get("classes_")
        self._y = target if classes is None else np.asarray(classes)[target.astype(np.intp)]
        used = None if weight is None else weight[rows]
        self._weight = None if used is None or (used == used[0]).all() else used

    def __call__(self, scores: Floats, so_far: Callable[[], FittedBoosting] | None = None) -> float:
        """Judge the scores of the engine, (n_rows, n_scores), and the model that they come from."""
        known = scores[self._rows] if self._base is None else scores[self._rows] + self._base

        def scores_of(X: Any) -> Floats:
            if X is self._X or so_far is None or self._encode is None:
                return known
            if self._has_offset:
                raise ValueError(
                    "scoring asks for predictions of other rows than those held out, and their offset is not known. "
                    "Predict the rows that it is given, as a whole."
                )
            return so_far().scores(self._encode(X), self._model._n_threads)

        judged = _Scored(self._model, self._view, scores_of, self._learned)
        weighted = {} if self._weight is None else {"sample_weight": self._weight}
        return -float(self._scorer(judged, self._X, self._y, **weighted))


class _Scored:
    """Looks to a scorer like a fitted estimator; the scores of the held-out rows are known."""

    def __init__(
        self,
        model: Any,
        view: FittedBoosting,
        scores_of: Callable[[Any], Floats],
        learned: dict[str, Any],
    ) -> None:
        self._scores_of = scores_of
        self._view = view
        self._model = model
        self._estimator_type = getattr(model, "_estimator_type", None)
        self.__dict__.update({k: v for k, v in learned.items() if k in ("classes_", "n_classes_")})
        self._learned = learned

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def fit(self) -> None:
        """Do nothing: scorers ask whether it is there."""

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self._model._predicted(self._scores_of(X), self._view, self._learned))

    def predict_proba(self, X: Any) -> Floats:
        return self._view.predicted(self._scores_of(X))

    def decision_function(self, X: Any) -> Floats:
        scores = self._scores_of(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores


def _known_curve(model: Any, name: str, n_done: int) -> list[float]:
    """Return what an earlier fit has recorded of the rounds that are kept; nothing if it lacks some."""
    known = list(getattr(model, name, []))
    return known[:n_done] if len(known) >= n_done else []


def _padded(model: Any, name: str, n_done: int, unknown: float) -> list[float]:
    """Return what an earlier fit has recorded of the rounds that are kept, with a number for those it lacks."""
    known = _known_curve(model, name, n_done)
    return [unknown] * (n_done - len(known)) + known


class Rounds:
    """The rounds of one fit."""

    def __init__(
        self,
        model: Any,
        engine: _engine.Boosting,
        earlier: FittedBoosting | None,
        view: Callable[[list[_engine.Tree]], FittedBoosting],
        has_held_out: bool,
        judge: HeldOutScore | None,
    ) -> None:
        self._model = model
        self._engine = engine
        self._earlier = earlier
        self._view = view
        self.has_held_out = has_held_out
        self._judge = judge
        done = 0 if earlier is None else earlier.n_rounds
        self.train_curve = _known_curve(model, "train_score_", done)
        self.held_out_curve = _known_curve(model, "validation_score_", done) if has_held_out else []
        self.out_of_bag_curve = _padded(model, "oob_scores_", done, np.nan)
        self.out_of_bag_gains = _padded(model, "oob_improvement_", done, 0.0)
        self._n_unknown = done - len(self.train_curve), done - len(self.held_out_curve)
        self._n_kept: int | None = None
        self.because = f"all {model.n_estimators} rounds are done"

    @property
    def _n_done(self) -> int:
        return self._engine.n_rounds

    def run(self) -> None:
        """Boost until the rounds are done, nothing improves any more, a callback says so, or it is interrupted."""
        model, first = self._model, self._n_done
        try:
            self._run(time.perf_counter())
        except KeyboardInterrupt:
            if not model.keep_interrupted or self._n_done == first:
                raise
            self._record()
            self.because = "it was interrupted"
            warn(f"The fit was interrupted after {self._n_done} of {model.n_estimators} rounds; these are kept.")
        finally:
            if model.verbose and sys.stderr.isatty():
                print(file=sys.stderr, flush=True)
        if self.held_out_curve and model._stops_early and model.keep_best:
            self._n_kept = int(np.argmin(self.held_out_curve)) + 1 + self._n_unknown[1]
        if model.verbose:
            self._report_end()

    def _run(self, began: float) -> None:
        model, first = self._model, self._n_done
        callbacks = [model.callbacks] if callable(model.callbacks) else list(model.callbacks or [])
        while self._n_done < model.n_estimators:
            self._engine.advance(1)
            self._record()
            if model.verbose:
                self._report(first, time.perf_counter() - began)
            answers = [callback(self._progress(began)) for callback in callbacks]  # all are called, whatever one says
            if any(answers):
                self.because = "a callback said so"
                break
            if self.has_held_out and model._stops_early and self._has_settled():
                judged = "loss" if self._judge is None else "score"
                self.because = f"the held-out {judged} has not improved for {self._patience} rounds"
                break

    def _record(self) -> None:
        """Note the losses of the last round, unless they are already; an interruption may come at any time."""
        if len(self.train_curve) + self._n_unknown[0] < self._n_done:
            self.train_curve.append(self._finite(self._engine.training_loss(), "training"))
        if self._model.subsample < 1 and len(self.out_of_bag_curve) < self._n_done:
            self._record_out_of_bag()
        if self.has_held_out and len(self.held_out_curve) + self._n_unknown[1] < self._n_done:
            self.held_out_curve.append(self._held_out_loss())

    def _record_out_of_bag(self) -> None:
        """Note what the last round has done for the rows that were not drawn for it."""
        before, after = self._engine.out_of_bag_loss()
        self.out_of_bag_curve.append(after)
        self.out_of_bag_gains.append(before - after if np.isfinite(after) else 0.0)

    def _held_out_loss(self) -> float:
        if self._judge is None:
            return self._finite(self._engine.held_out_loss(), "held-out")
        loss = self._judge(self._engine.held_out_scores().T, self.so_far)
        if not np.isfinite(loss):
            raise ValueError(
                f"scoring={self._model.scoring!r} gives {-loss} after round {self._n_done}, which cannot be "
                "compared with other rounds. Use another metric, or hold out more rows."
            )
        return loss

    @property
    def _patience(self) -> int:
        return int(self._model.n_iter_no_change or _PATIENCE)

    def _finite(self, loss: float, rows: str) -> float:
        if not np.isfinite(loss):
            raise ValueError(
                f"Boosting has diverged: after round {self._n_done} the loss of the {rows} rows is {loss}. Lower "
                f"learning_rate={self._model.learning_rate}, or limit the steps with max_step."
            )
        return loss

    def _has_settled(self) -> bool:
        curve, patience = self.held_out_curve, self._patience
        if len(curve) <= patience:
            return False
        return min(curve[-patience:]) >= min(curve[:-patience]) - float(self._model.tol)

    def _progress(self, began: float) -> dict[str, Any]:
        return {
            "round": self._n_done,
            "n_estimators": self._model.n_estimators,
            "train_loss": self.train_curve[-1],
            "validation_loss": self.held_out_curve[-1] if self.held_out_curve else None,
            "seconds": time.perf_counter() - began,
        }

    def _report(self, first: int, seconds: float) -> None:
        done, wanted = self._n_done, self._model.n_estimators
        left = seconds / max(1, done - first) * (wanted - done)
        parts = [f"round {done} of {wanted}", f"loss {self.train_curve[-1]:.5g}"]
        if self.held_out_curve:
            parts.append(f"held out {self.held_out_curve[-1]:.5g}")
        parts.append(f"{left:.0f} s left")
        line = ", ".join(parts)
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif done == wanted or done % max(1, wanted // 10) == 0:
            print(line, file=sys.stderr, flush=True)

    def _report_end(self) -> None:
        kept = self._n_done if self._n_kept is None else self._n_kept
        dropped = f"; the first {kept}, the best, are kept" if kept < self._n_done else ""
        print(f"stopped after round {self._n_done}: {self.because}{dropped}", file=sys.stderr, flush=True)

    def so_far(self) -> FittedBoosting:
        """Return the model of the rounds done."""
        before = [] if self._earlier is None else self._earlier.trees()
        return self._view(before + self._engine.trees(0))

    def result(self) -> FittedBoosting:
        """Return the model, cut back to its best round if asked for."""
        whole = self.so_far()
        return whole if self._n_kept is None else whole.first(self._n_kept)
