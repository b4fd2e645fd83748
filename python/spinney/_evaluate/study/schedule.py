"""What a study fits next and to how many rows, decided by the time left and the seconds of earlier fits.

Pure logic: it runs nothing and reads no clock. The order is: the first job, with fewer rows only if two folds of all
rows would take several times the time left; jobs that lead; then those with the highest expected gain per second. A job
that is too slow for all rows waits, but only once one of its fits was timed. When no other job is left, waiting jobs
get as many rows as there is time for, and more rows as long as time is left.

Time for the final fits is reserved. Where the table has far more rows than are studied, the last of them is boosting on
all rows. A fit in rounds ends at its limit, so that a wrong estimate costs rounds and not the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

REFIT = 1.4  # time of a fit to all training rows, relative to a fold
REFIT_ALL = 1.8  # time of a fit to all rows, including the test set, relative to a fold
PROBE_ROWS = 2000  # of a fit that is only timed
_FEWEST_PROBED = 250
_PROBE_SHARE = 0.1  # of the time left for a fit that is only timed
FEWEST_ROWS = 500  # that a model is fitted to, if a fold has more
_SHARE = 0.6  # of the time left for one model while others wait
_FAR_TOO_LONG = 3.0  # expected seconds of two folds of the first model, relative to the time left
_LAST_SHARE = 0.95  # for a model that does not get all rows
_STEP = 0.95  # by which the rows decrease until there is time for them
MOST_RESERVED = 0.55  # of the time limit, for the final fit to all rows
_MARGIN = 1.5  # of the time left that is shown: estimates vary
_LEAST_SHARE = 0.35  # of the time left, for jobs that lead
_SAFETY = 1.5  # far more rows take more than their share of time
_STUDY_FRACTION = 0.85  # of the time limit; the rest is for the report
_REPORT_MINUTES = 0.15  # for a report, at least
_LEAST_LIMIT = 1.0  # seconds of a fit in rounds


@dataclass(eq=False)
class Job:
    """A model to cross-validate.

    Attributes
    ----------
    name : str
    family : str
        Models of one family run at the same pace.
    work : callable
        From the number of training rows to the estimated seconds of a fit and a prediction.
    n_rows : int
        Training rows of a fold.
    gain : float
        Expected gain, relative to other models.
    leads : bool
        Whether it runs before others, and with fewer rows rather than later.
    rows : int
        Training rows of the finished cross-validation; 0: none.
    timed : (int, float)
        Rows and seconds of the latest fit; 0 rows: none.
    has_failed : bool
    """

    name: str
    family: str
    work: Callable[[int], float]
    n_rows: int
    gain: float = 1.0
    leads: bool = False
    rows: int = 0
    timed: tuple[int, float] = (0, 0.0)
    has_failed: bool = False


@dataclass(frozen=True, eq=False)
class Action:
    """A job to run on all folds, or a short fit to time it, and the number of training rows."""

    job: Job
    rows: int
    is_probe: bool = False

    @property
    def max_rows(self) -> int | None:
        """The number of rows; None: all."""
        return self.rows if self.rows < self.job.n_rows else None


@dataclass(eq=False)
class Schedule:
    """The jobs of a study; the first one always runs.

    Attributes
    ----------
    jobs : list of Job
    n_folds : int
    seconds : float
        The time limit.
    whole : float
        Rows of the table relative to those that are studied.
    relative : float
        Time of boosting in the folds, relative to its default settings, which the final fit has if there is time.
    pace : float
        Seconds of a unit of work, for families that were not timed.
    """

    jobs: list[Job]
    n_folds: int
    seconds: float
    whole: float = 1.0
    relative: float = 1.0
    pace: float = 1.0
    paces: dict[str, float] = field(default_factory=dict)

    def learn(self, job: Job, rows: int, seconds: float) -> None:
        """Update the pace of a job and its family by a fit."""
        job.timed = (rows, seconds)
        self.paces[job.family] = seconds / job.work(rows)

    def expected(self, job: Job, rows: int) -> float:
        """Return the expected seconds of a fit and a prediction."""
        at, seconds = job.timed
        pace = seconds / job.work(at) if at else self.paces.get(job.family, self.pace)
        return pace * job.work(rows)

    @property
    def reserve(self) -> float:
        """Expected seconds of the final fits of the finished jobs."""
        return REFIT * sum(self._folds) + self.last

    @property
    def last(self) -> float:
        """Expected seconds of the final fits to all rows: of all members of a stack, or of boosting."""
        if self.whole <= 1:
            return REFIT_ALL * sum(self._folds)
        lead = [self.expected(job, job.rows or job.n_rows) for job in self.jobs[:2] if not job.has_failed]
        full = _SAFETY * REFIT_ALL * self.whole * max(lead, default=0.0) / min(1.0, self.relative)
        return max(REFIT_ALL * max(self._folds, default=0.0), min(full, MOST_RESERVED * self.seconds))

    @property
    def _folds(self) -> list[float]:
        return [self.expected(job, job.rows) for job in self.jobs if job.rows]

    def limit(self, action: Action, n_folds: int, left: float) -> float:
        """Return the most seconds of a fit in rounds, so that there is time for the other folds and the final fits."""
        is_early = action.job.leads or action.job is self.jobs[0]
        available = self._available(left, is_early)
        return max(_LEAST_LIMIT, (_SHARE if is_early else _LAST_SHARE) * available / (n_folds + self._n_final))

    def _available(self, left: float, is_early: bool) -> float:
        """Return the seconds left for folds; leading jobs get some of those that are reserved."""
        return max(left - self.reserve, _LEAST_SHARE * left if is_early else 0.0)

    def cost(self, job: Job, rows: int, n_folds: int | None = None) -> float:
        """Return the expected seconds of folds, and of the final fits that the job adds."""
        return self.expected(job, rows) * ((self.n_folds if n_folds is None else n_folds) + self._n_final)

    @property
    def _n_final(self) -> float:
        """Time of the final fits that a job adds, relative to a fold."""
        return REFIT + (REFIT_ALL if self.whole <= 1 else 0.0)

    def ahead(self, left: float) -> float:
        """Return the expected seconds of all jobs and final fits, with a margin, at most the time left."""
        waiting = [job for job in self.jobs if not job.rows and not job.has_failed]
        ahead = self.reserve + sum(self.cost(job, job.n_rows) for job in waiting)
        return max(0.0, min(left, _MARGIN * ahead))

    def can_go_on(self, action: Action, n_folds: int, left: float) -> bool:
        """Return whether there is time for the other folds of an action."""
        return self.cost(action.job, action.rows, n_folds) <= left - self.reserve

    def next(self, left: float) -> Action | None:
        """Return what to run with the time left; None: nothing more."""
        first = self.jobs[0]
        if not first.rows and not first.has_failed:
            return self._first(left)
        waiting = [job for job in self.jobs if job.rows < job.n_rows and not job.has_failed]
        waiting.sort(
            key=lambda job: (
                job.rows > 0 and not job.leads,
                not job.leads,
                -job.gain / max(1e-9, self.expected(job, job.n_rows)),
            )
        )
        for job in waiting:
            available = self._available(left, job.leads)
            if (job.leads or not job.rows) and self.cost(job, job.n_rows) <= _SHARE * available:
                return Action(job, job.n_rows)
            if not job.timed[0] and available > 0:
                return Action(job, self._probe_rows(job, available), is_probe=True)
            if job.leads and (rows := self._affordable(job, available)):
                return Action(job, rows)
        for job in waiting:
            if rows := self._affordable(job, self._available(left, job.leads)):
                return Action(job, rows)
        return None

    def _first(self, left: float) -> Action:
        """Return the first job: on all rows, unless two folds would take far longer than there is time."""
        job = self.jobs[0]
        if self.cost(job, job.n_rows, 2) <= _FAR_TOO_LONG * left or job.n_rows <= FEWEST_ROWS:
            return Action(job, job.n_rows)
        if not job.timed[0]:
            return Action(job, self._probe_rows(job, left), is_probe=True)
        return Action(job, self._affordable(job, left) or FEWEST_ROWS)

    def _probe_rows(self, job: Job, available: float) -> int:
        """Return the rows of a fit that is only timed: fewer if the estimate, which may be wrong, is long."""
        rows = min(PROBE_ROWS, job.n_rows)
        while rows >= 2 * _FEWEST_PROBED and self.expected(job, rows) > _PROBE_SHARE * available:
            rows //= 2
        return rows

    def _affordable(self, job: Job, available: float) -> int:
        """Return the rows that there is time for, all or a sample; 0: too few, or not many more than before."""
        rows, fewest = job.n_rows, max(2 * job.rows, min(FEWEST_ROWS, job.n_rows))
        while rows >= fewest:
            if self.cost(job, rows) <= _LAST_SHARE * available:
                return rows
            rows = int(_STEP * rows)
        return 0


def before_report(minutes: float) -> float:
    """Return the part of a time limit that leaves time for the report."""
    return max(0.5 * minutes, min(_STUDY_FRACTION * minutes, minutes - _REPORT_MINUTES))
