"""Predictions of described machines, as typed values that serialize and compare."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from html import escape
from operator import is_
from typing import Any, TypeVar

import pandas as pd

from perfcast.inference.measured_index import OTHER_SOFTWARE, PublishedScores
from perfcast.inference.reference_data import DatasetBasis
from perfcast.inference.rules.presentation import Check, DerivedOutput, FactSource, Numbers
from perfcast.uncertainty.in_domain import AHEAD, OF_PAIR, RESULTS, YOUNG
from perfcast.utils.terminal_tables import format_interval, format_number

DERIVED = "derived"
"""Name that stands in the place of a target."""
RATIOS = ("ratio_to", "ratio", "ratio_low", "ratio_high")
"""Columns of the task of the base, of the ratio to it, and of its interval; a table without ratios has none."""
ESTIMATE = "estimates, not official results"
_MAX_HTML_ROWS = 60


@dataclass(frozen=True)
class Value:
    """One cell of a completed machine with its origin, one of `cells.ORIGINS`."""

    column: str
    group: str
    value: float | str
    unit: str
    origin: str


@dataclass(frozen=True)
class Neighbor:
    """A measured result.

    Units: `score` that of the target, `distance` natural logarithms, see `NeighborIndex`.
    """

    result: str
    machine: str
    score: float | None
    published: str
    distance: float


@dataclass(frozen=True)
class Driver:
    """Factor by which a group of characteristics changes the score of the typical machine: 1.2 is a fifth more."""

    group: str
    factor: float


_HIGH_SCORE, _FAIR_SCORE = 0.75, 0.4
"""Least in-domain scores: errors of backtests were at most 1.33 and 2.5 times the smallest at such distances."""
NEVER = "low: never measured"
"""Trust in an answer about a kind without any measured result."""
_REASONS = {
    RESULTS: "few results",
    OF_PAIR: "few results of this task",
    YOUNG: "a young task",
    AHEAD: "later than the data",
}


def rate_trust(score: float | None, group: str) -> str:
    """Return the trust that an in-domain score gives: high, or fair or low with what lowers the score most."""
    if score is None or score >= _HIGH_SCORE:
        return "" if score is None else "high"
    reason = _REASONS.get(group, f"least similar group {group}" if group else "")
    return ": ".join(filter(None, ("fair" if score >= _FAIR_SCORE else "low", reason)))


def cap_trust(trust: str, reason: str) -> str:
    """Return a trust that is at most fair, for a reason."""
    return f"fair: {reason}" if trust == "high" else trust


@dataclass(frozen=True)
class Estimate:
    """Prediction of one machine, task and target.

    `low` to `high` is the interval of `level`; `trust` is high, fair or low, see `rate_trust`; `in_domain_score` is 1
    close to the training data. They are None, or "", without a calibration. `missing` counts features without a
    value, `assumed` imputed usual values. The drivers lead from `typical_machine` to the median without `user_factor`,
    the factor by which user measurements changed it (None without any). `published` has the published results of
    this machine, or else those that differ from it in the fewest given values, None where there are none;
    `published_outside` names those that do not differ, or else those of it with other software, if their median lies
    outside the interval. Units: `unit`.
    """

    task: str
    target: str
    median: float
    low: float | None
    high: float | None
    level: float
    unit: str
    in_domain_score: float | None
    trust: str
    missing: int
    assumed: int
    user_factor: float | None = None
    neighbors: tuple[Neighbor, ...] = ()
    typical_machine: Neighbor | None = None
    drivers: tuple[Driver, ...] = ()
    published: PublishedScores | None = None
    published_outside: str = ""

    def __repr__(self) -> str:
        interval = format_interval(self.low, self.high)
        shown = f", {100 * self.level:g} % interval {interval}" if interval else ""
        return f"<Estimate {self.task} {self.target}: {format_number(self.median)}{shown}>"

    def times(self, factor: float) -> Estimate:
        """Return the estimate with its interval multiplied by a factor; its published results stay."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return replace(self, median=self.median * factor, low=low, high=high)

    def cells(self) -> dict[str, Any]:
        """Return the columns of a table of estimates."""
        return {
            "task": self.task,
            "target": self.target,
            "estimate": self.median,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "trust": self.trust,
            "in_domain_score": self.in_domain_score,
            "published": published.count if (published := self.published) else 0,
            "published_median": published.median if published else float("nan"),
            "published_differs": "; ".join(published.differs) if published else "",
            "published_outside": self.published_outside,
        }


def list_outside(estimates: Sequence[Estimate]) -> list[str]:
    """Return one note on the published results that lie outside the intervals of a machine, none without such."""
    far = [each for each in estimates if each.published_outside]
    outside = "; ".join(f"{each.task}: {each.published_outside}, estimate {format_number(each.median)}" for each in far)
    is_other = all(each.published_outside.partition(",")[0].endswith(OTHER_SOFTWARE) for each in far)
    remedy = "compare the software" if is_other else "trust them"
    return [f"published results lie outside the interval ({outside}): {remedy}"] if far else []


@dataclass(frozen=True)
class Unpredicted:
    """Output of a machine that cannot be predicted, with the reason."""

    task: str
    target: str
    message: str


MEASURED_FACTOR = 1.1
"""Measured score over its prediction, in the example of how one result moves the others."""


@dataclass(frozen=True)
class BacktestError:
    """Errors of an output in backtests, at the distance of the machine: half and nine tenths of them are smaller.

    Units: `median` and `p90` shares, 0.05 is 5 %.
    """

    task: str
    target: str
    median: float
    p90: float


@dataclass(frozen=True)
class Move:
    """Change of another prediction by one measured score, which is `MEASURED_FACTOR` times its prediction.

    `factor` multiplies the estimate; `width` is the share of its interval's width, in logarithms, that remains.
    """

    task: str
    target: str
    factor: float
    width: float


@dataclass(frozen=True)
class Assumption:
    """Field whose assumed columns change the estimates: `spread` is their standard deviation, 0.05 about 5 %.

    They are replaced by those of every donor, all other values stay; the largest spread of
    all tasks counts.
    """

    field: str
    columns: tuple[str, ...]
    spread: float


@dataclass(frozen=True)
class Basis:
    """Basis of the estimates of one machine.

    `trained_until` is the month of the newest of the `measured_results` of training, "" without dates. `moves` are
    those by a result of `measured_task`, the one that narrows the other intervals most. `later_results` says what the
    results after training did, "" without any. `assumptions` are those that change the estimates, most first.
    """

    measured_results: int
    trained_until: str
    errors: tuple[BacktestError, ...] = ()
    facts: tuple[FactSource, ...] = ()
    checks: tuple[Check, ...] = ()
    measured_task: str = ""
    moves: tuple[Move, ...] = ()
    later_results: str = ""
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True)
class DerivedValue:
    """Derived quantity of one machine; `low` to `high` is its interval. Units: `unit`.

    The ends of the interval are those of the predictions, as if their errors were fully correlated.
    """

    name: str
    median: float
    low: float | None
    high: float | None
    unit: str
    formula: str

    def cells(self) -> dict[str, Any]:
        """Return the columns of a table of estimates."""
        return {
            "task": self.name,
            "target": DERIVED,
            "estimate": self.median,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "published": 0,
        }


@dataclass(frozen=True)
class Ratio:
    """Score of a task of a bridged dataset over that of its task in the base, for one machine.

    Both rest on the same assumed values, and the error of the base is in both, so the interval of the `level` is
    narrower than that of a ratio of independent estimates. It is None without a calibration.
    """

    task: str
    base_task: str
    target: str
    median: float
    low: float | None
    high: float | None
    level: float

    def cells(self) -> dict[str, Any]:
        """Return the columns beside the estimate of the task, see `RATIOS`."""
        return dict(zip(RATIOS, (self.base_task, self.median, self.low, self.high), strict=True))


MAX_RATIO = 20.0
"""High / low of an interval above which there is no estimate: it would tell nothing."""


def is_too_wide(low: float, high: float) -> bool:
    """Return whether an interval tells nothing."""
    return high > MAX_RATIO * low


def _is_known(cell: object) -> bool:
    """Return whether a cell is a number above 0."""
    return isinstance(cell, (int, float)) and cell == cell and cell > 0  # noqa: PLR0124  (NaN differs from itself)


def derive_values(
    outputs: Sequence[DerivedOutput], scores: Mapping[str, tuple[float, float | None, float | None]], cells: Numbers
) -> tuple[tuple[DerivedValue, ...], tuple[str, ...]]:
    """Return the derived quantities whose tasks and columns are known, and notes on those whose interval is too wide.

    Args: `scores` are median, low and high by task, `cells` the numbers of the machine by column.
    """
    values, notes = [], []
    for each in outputs:
        if not all(task in scores for task in each.tasks) or not all(
            _is_known(cells.get(name)) for name in each.columns
        ):
            continue
        median, high, low = (
            None
            if any(scores[task][place] is None for task in each.tasks)
            else float(each.compute({task: scores[task][place] for task in each.tasks}, cells))
            for place in range(3)
        )
        if low is not None and high is not None and low > high:  # it rises with the scores
            low, high = high, low
        if low is not None and high is not None and is_too_wide(low, high):
            factor = "without bound" if low <= 0 else f"a factor of {high / low:.3g}"
            notes.append(f"{each.name} is left out: its interval would span {factor}, more than {MAX_RATIO:g}")
        elif median is not None:
            values.append(DerivedValue(each.name, median, low, high, each.unit, each.formula))
    return tuple(values), tuple(notes)


OK, REFUSED = "ok", "refused"
"""Status of a machine in a batch."""


@dataclass(frozen=True)
class Prediction:
    """Estimates of one machine, with the values that they rest on.

    `status` is OK, or REFUSED for a machine that cannot be used: it has no estimates, and `message` is the reason. Of
    its outputs, `unpredicted` have no estimate: their intervals would be too wide. `carried` has the columns of its
    file that describe no machine. `basis` is there where the prediction is explained; `derived` has what follows from
    several estimates, `ratios` those of a bridged dataset's tasks to the tasks of its base.
    """

    line: int
    machine: str
    estimates: tuple[Estimate, ...]
    values: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()
    status: str = OK
    message: str = ""
    basis: Basis | None = None
    derived: tuple[DerivedValue, ...] = ()
    carried: Mapping[str, str | float | None] = field(default_factory=dict)
    unpredicted: tuple[Unpredicted, ...] = ()
    ratios: tuple[Ratio, ...] = ()

    def __repr__(self) -> str:
        if self.status == REFUSED:
            return f"<Prediction {self.machine}: refused, {self.message}>"
        return f"<Prediction {self.machine}: {len(self.estimates)} estimates>"

    def _repr_html_(self) -> str:
        """Return the machine and its estimates for a notebook, with every text escaped."""
        if self.status == REFUSED:
            return f"<p>{escape(self.machine)}: refused, {escape(self.message)}</p>"
        return f"<p><b>{escape(self.machine)}</b></p>{_html_table([each.cells() for each in self.estimates])}"


def _html_table(estimates: pd.DataFrame | list[dict[str, Any]]) -> str:
    options: dict[str, Any] = {"index": False, "max_rows": _MAX_HTML_ROWS, "na_rep": "", "border": 0}
    return f"{pd.DataFrame(estimates).to_html(float_format=format_number, **options)}<p>{ESTIMATE}</p>"


def lowest_trust(estimates: Iterable[Estimate]) -> str:
    """Return the trust of the estimate farthest from the training data."""
    return min(estimates, key=lambda estimate: estimate.in_domain_score or 0.0).trust


def find_shared_notes(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the notes of all machines, in their order; none of a single one."""
    first, *others = lists or [()]
    return [note for note in first if others and all(note in other for other in others)]


Named = TypeVar("Named")


def name_tasks(answer: Named, titles: Mapping[str, str]) -> Named:
    """Return an answer with every task under its title, the name that its publisher prints."""
    if isinstance(answer, tuple):
        named = tuple(name_tasks(each, titles) for each in answer)
        return answer if all(map(is_, named, answer)) else named  # type: ignore[return-value]
    changes = {}
    for name, value in vars(answer).items() if titles and is_dataclass(answer) else ():
        if name in _TASK_FIELDS:
            changes[name] = titles.get(value, value)
        elif not isinstance(value, (str, float, int)) and name not in _WITHOUT_TASKS:
            changes[name] = name_tasks(value, titles)
    changed = {name: value for name, value in changes.items() if value is not getattr(answer, name)}
    return replace(answer, **changed) if changed else answer  # type: ignore[type-var]


_TASK_FIELDS = ("task", "base_task", "measured_task")
_WITHOUT_TASKS = frozenset(("values", "published", "drivers", "typical_machine"))
"""Fields of answers in which no task is named."""


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that spreadsheets compute."""


def as_csv(frame: pd.DataFrame) -> str:
    """Return CSV with six significant digits; a text that a spreadsheet would compute begins with an apostrophe."""

    def quote(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).columns
    frame = frame.assign(**{name: frame[name].map(quote) for name in texts})
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


@dataclass(frozen=True)
class Answer(ABC):
    """Base of what a command answers, as JSON; its subclasses have no `repr` of their own."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the answer as a table, for CSV."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.to_frame())} rows of estimates; see to_frame()>"

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with every text escaped."""
        return _html_table(self.to_frame())

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class ChampionAnswer(Answer):
    """Base of answers that name the champion that made them, see `Champion.identity`."""

    dataset: str
    champion: str
    preset: str
    results_until: str
    month: str = field(default="", kw_only=True)
    """Month of the measurements that are predicted, as 2026-11; that of a later launch for a later CPU model."""


def join_names(*names: str) -> str:
    """Return distinct names as one text."""
    return ", ".join(dict.fromkeys(names))


def name_carried(carried: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return carried columns for a table: those with the name of one of its columns follow `carried.`."""
    return {f"carried.{name}" if name in columns else name: cell for name, cell in carried.items()}


@dataclass(frozen=True, repr=False)
class Predictions(ChampionAnswer):
    """Predictions of machines in the order of the request, refused ones included, with the champion that made them.

    Of a pair of champions, `dataset`, `champion`, `preset` and `results_until` name both; `bases` has one of each.
    """

    machines: tuple[Prediction, ...]
    features: int
    kind: str = ESTIMATE
    bases: tuple[DatasetBasis, ...] = ()

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.machines)

    @property
    def refused(self) -> tuple[Prediction, ...]:
        """The machines that cannot be used."""
        return tuple(machine for machine in self.machines if machine.status == REFUSED)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per machine, task and target, one per derived quantity, and one per refused machine.

        The ratio to the task of another dataset stands beside the estimate of its task, see `RATIOS`.
        Carried columns come last, see `name_carried`.
        """
        rows: list[dict[str, Any]] = []
        carried: dict[str, None] = {}
        for machine in self.machines:
            given = name_carried(machine.carried, _COLUMNS)
            carried |= dict.fromkeys(given)
            common = {
                **given,
                "line": machine.line,
                "machine": machine.machine,
                "champion": self.champion,
                "notes": "; ".join(machine.notes),
                "features": self.features,
                "status": machine.status,
                "message": machine.message,
            }
            ratio_of = {each.task: each.cells() for each in machine.ratios}
            rows += [
                {
                    **common,
                    **estimate.cells(),
                    **ratio_of.get(estimate.task, {}),
                    "assumed": estimate.assumed,
                    "features_missing": estimate.missing,
                }
                for estimate in machine.estimates
            ]
            rows += [{**common, **each.cells()} for each in machine.derived]
            rows += [{**common, "status": REFUSED, **asdict(each)} for each in machine.unpredicted]
            if machine.status == REFUSED and not machine.unpredicted:
                rows.append(common)
        ratios = RATIOS if any(machine.ratios for machine in self.machines) else ()
        return pd.DataFrame(rows, columns=[*_COLUMNS, *ratios, *carried])


_COLUMNS = (
    "line",
    "machine",
    "task",
    "target",
    "estimate",
    "low",
    "high",
    "unit",
    "trust",
    "in_domain_score",
    "published",
    "published_median",
    "published_differs",
    "published_outside",
    "assumed",
    "champion",
    "features_missing",
    "features",
    "status",
    "message",
    "notes",
)
