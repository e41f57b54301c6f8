"""Predictions of described machines, as typed values that serialize and compare."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from html import escape
from operator import is_
from typing import Any, TypeVar

import pandas as pd

from perfcast.inference.basis import Basis
from perfcast.inference.basis_text import format_basis
from perfcast.inference.completed import ORIGINS
from perfcast.inference.derived import DERIVED, DerivedValue
from perfcast.inference.imputation import find_rules
from perfcast.inference.published import PublishedGroup, PublishedScores
from perfcast.uncertainty.in_domain import AHEAD, RESULTS
from perfcast.utils.terminal_tables import NO_BREAK, format_interval, format_number, render_table, wrap_text

ESTIMATE = "estimates, not official results"
_MAX_HTML_ROWS = 60
_MAX_GROUPS = 4
"""Groups of published results that the text shows of a task, the newest first; JSON has all."""


@dataclass(frozen=True)
class Value:
    """One cell of a completed machine with its origin, one of `impute.ORIGINS`."""

    column: str
    group: str
    value: float | str
    unit: str
    origin: str


@dataclass(frozen=True)
class Neighbor:
    """A measured result; without a score where its terms leave that out of an exported champion.

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
_REASONS = {RESULTS: "few results", AHEAD: "years after the data"}


def rate_trust(score: float | None, group: str) -> str:
    """Return the trust that an in-domain score gives: high, or fair or low with what lowers the score most."""
    if score is None or score >= _HIGH_SCORE:
        return "" if score is None else "high"
    reason = _REASONS.get(group, f"least similar group {group}" if group else "")
    return ": ".join(filter(None, ("fair" if score >= _FAIR_SCORE else "low", reason)))


@dataclass(frozen=True)
class Estimate:
    """Prediction of one machine, task and target.

    `low` to `high` is the interval of `level`; `trust` is high, fair or low, see `rate_trust`; `in_domain_score` is 1
    close to the training data. They are None, or "", without a calibration. `missing` counts features without a
    value, `assumed` imputed usual values. The drivers lead from `typical_machine` to the median without `user_factor`,
    the factor by which user measurements changed it (None without any). `published` has the published results of
    exactly this machine, None where there are none; `published_outside` names them, or else those of it with other
    software, if their median lies outside the interval. Units: `unit`.
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

    def cells(self) -> dict[str, Any]:
        """Return the columns of a table of estimates."""
        return {
            **{"task": self.task, "target": self.target, "estimate": self.median},
            **{"low": self.low, "high": self.high, "unit": self.unit},
            **{"trust": self.trust, "in_domain_score": self.in_domain_score},
            **{"published": published.count if (published := self.published) else 0},
            **{"published_median": published.median if published else float("nan")},
            **{"published_outside": self.published_outside},
        }


def list_outside(estimates: Sequence[Estimate]) -> list[str]:
    """Return one note on the published results that lie outside the intervals of a machine, none without such."""
    far = [each for each in estimates if each.published_outside]
    outside = "; ".join(f"{each.task}: {each.published_outside}, estimate {format_number(each.median)}" for each in far)
    remedy = "trust them" if any(each.published for each in far) else "compare the software"
    return [f"published results lie outside the interval ({outside}): {remedy}"] if far else []


@dataclass(frozen=True)
class Unpredicted:
    """Output of a machine that cannot be predicted, with the reason."""

    task: str
    target: str
    message: str


OK, REFUSED = "ok", "refused"
"""Status of a machine in a batch."""


@dataclass(frozen=True)
class Prediction:
    """Estimates of one machine, with the values that they rest on.

    `status` is OK, or REFUSED for a machine that cannot be used: it has no estimates, and `message` is the reason. Of
    its outputs, `unpredicted` have no estimate: their intervals would be too wide. `carried` has the columns of its
    file that describe no machine. `basis` is there where the prediction is explained; `derived` has what follows from
    several estimates.
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


Named = TypeVar("Named")


def name_tasks(answer: Named, titles: Mapping[str, str]) -> Named:
    """Return an answer with every task under its title, the name that its publisher prints."""
    if isinstance(answer, tuple):
        named = tuple(name_tasks(each, titles) for each in answer)
        return answer if all(map(is_, named, answer)) else named  # type: ignore[return-value]
    if not titles or not is_dataclass(answer) or isinstance(answer, type):
        return answer
    changes = {}
    for each in fields(answer):
        value: Any = getattr(answer, each.name)
        new = titles.get(value, value) if each.name in _TASK_FIELDS else name_tasks(value, titles)
        if new is not value:
            changes[each.name] = new
    return replace(answer, **changes) if changes else answer


_TASK_FIELDS = ("task", "measured_task")


@dataclass(frozen=True)
class Answer:
    """Base of what a command answers, as JSON; its subclasses have `to_frame` for CSV and no `repr` of their own."""

    def to_frame(self) -> pd.DataFrame:
        """Return the answer as a table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.to_frame())} rows of estimates; see to_frame()>"

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with every text escaped."""
        return _html_table(self.to_frame())

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)


def name_carried(carried: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return carried columns for a table: those with the name of one of its columns follow `carried.`."""
    return {f"carried.{name}" if name in columns else name: cell for name, cell in carried.items()}


@dataclass(frozen=True, repr=False)
class Predictions(Answer):
    """Predictions of machines in the order of the request, refused ones included, with the champion that made them."""

    dataset: str
    champion: str
    preset: str
    machines: tuple[Prediction, ...]
    features: int
    kind: str = ESTIMATE

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.machines)

    @property
    def refused(self) -> tuple[Prediction, ...]:
        """The machines that cannot be used."""
        return tuple(machine for machine in self.machines if machine.status == REFUSED)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per machine, task and target, one per derived quantity, and one per refused machine.

        Carried columns come last, see `name_carried`.
        """
        rows: list[dict[str, Any]] = []
        carried: dict[str, None] = {}
        for machine in self.machines:
            given = name_carried(machine.carried, _COLUMNS)
            carried |= dict.fromkeys(given)
            common = {
                **given,
                **{"line": machine.line, "machine": machine.machine, "champion": self.champion},
                "notes": "; ".join(machine.notes),
                **{"features": self.features, "status": machine.status, "message": machine.message},
            }
            rows += [
                {**common, **estimate.cells(), "assumed": estimate.assumed, "features_missing": estimate.missing}
                for estimate in machine.estimates
            ]
            rows += [{**common, **each.cells()} for each in machine.derived]
            rows += [{**common, "status": REFUSED, **asdict(each)} for each in machine.unpredicted]
            if machine.status == REFUSED and not machine.unpredicted:
                rows.append(common)
        return pd.DataFrame(rows, columns=[*_COLUMNS, *carried])


_COLUMNS = (
    *("line", "machine", "task", "target", "estimate", "low", "high", "unit", "trust", "in_domain_score"),
    *("published", "published_median", "published_outside", "assumed", "champion", "features_missing", "features"),
    *("status", "message", "notes"),
)
_HEADER = ["task", "estimate", "interval", "unit", "trust"]


def format_predictions(predictions: Predictions, width: int | None = None) -> str:
    """Return the machines one after another: estimates, nearest measured results, drivers, and values by origin.

    Predictions without values are one table. `width` is that of the terminal, None for no limit.
    """
    refused = [wrap_text(f"{each.machine}: refused, {each.message}", width) for each in predictions.refused]
    answered = [prediction for prediction in predictions if prediction.status == OK]
    if any(prediction.values for prediction in answered):
        origins = {**ORIGINS, **find_rules(predictions.dataset).origin_meanings}
        return "\n\n".join([*(_format_prediction(prediction, origins, width) for prediction in answered), *refused])
    rows = [
        [each.machine, *cells]
        for each in answered
        for cells in (*map(_estimate_cells, each.estimates), *map(_derived_cells, each.derived))
    ]
    notes: dict[str, list[str]] = {}
    for each in answered:
        for note in each.notes:
            notes.setdefault(note, []).append(each.machine)
    lines = [wrap_text(f"{_name_some(machines)}: {note}", width) for note, machines in notes.items()]
    return "\n".join([*lines, *([render_table(["machine", *_HEADER], rows, width)] if rows else []), *refused])


def _name_some(machines: Sequence[str]) -> str:
    return machines[0] if len(machines) == 1 else f"{machines[0]} and {len(machines) - 1} more"


def _format_prediction(prediction: Prediction, origins: Mapping[str, str], width: int | None) -> str:
    estimates = prediction.estimates
    interval = f"{100 * estimates[0].level:g} % interval"
    header = [interval if name == "interval" else name for name in _HEADER]
    first = list_outside(estimates)
    parts = [wrap_text(": ".join([prediction.machine, *first]), width)]
    parts += [wrap_text(f"note: {note}", width) for note in prediction.notes if note not in first]
    if published := [row for estimate in estimates for row in _published_rows(estimate)]:
        parts.append("published results of this machine")
        parts.append(render_table(["task", "results", "median", "range", "compiler, year", "newest"], published, width))
        parts.append("prediction")
    parts.append(render_table(header, [_estimate_cells(estimate) for estimate in estimates], width))
    if prediction.derived:
        rows = [[*_derived_cells(each)[:4], each.formula] for each in prediction.derived]
        parts.append("derived from the estimates, as if their errors were fully correlated")
        parts.append(render_table([DERIVED, "estimate", interval, "unit", "formula"], rows, width))
    changes = [
        f"{each.task} {100 * (each.user_factor - 1):+.1f} %" for each in estimates if each.user_factor is not None
    ]
    if changes:
        parts.append(wrap_text(f"changed by your own measurements: {', '.join(changes)}", width))
    if any(estimate.neighbors for estimate in estimates):
        parts.append("nearest measured machines")
        rows = [row for estimate in estimates for row in _neighbor_rows(estimate)]
        parts.append(render_table(["task", "score", "machine", "published", "distance"], rows, width))
    if any(estimate.typical_machine for estimate in estimates):
        parts.append("drivers: factors on the score of a typical machine of the last year")
        groups = sorted({driver.group for estimate in estimates for driver in estimate.drivers})
        rows = [[each.task, *_driver_cells(each, groups), _typical_cell(each)] for each in estimates]
        header = ["task", *groups, "typical machine"]
        parts.append(render_table(header, rows, width))
    for origin, meaning in origins.items():
        values = [_format_value(value) for value in prediction.values if value.origin == origin]
        if values:
            parts.append(wrap_text(f"{origin} ({meaning}): {', '.join(values)}", width))
    return "\n".join([*parts, *(wrap_text(line, width) for line in format_basis(prediction.basis))])


def _estimate_cells(estimate: Estimate) -> list[str]:
    interval = format_interval(estimate.low, estimate.high)
    return [
        estimate.task,
        format_number(estimate.median),
        interval,
        estimate.unit,
        estimate.trust,
    ]


def _derived_cells(value: DerivedValue) -> list[str]:
    interval = format_interval(value.low, value.high)
    return [value.name, format_number(value.median), interval, value.unit, DERIVED]


def _published_rows(estimate: Estimate) -> list[list[str]]:
    """Return the row of all published results, with the id of the newest, and one for every compiler and year."""
    published = estimate.published
    if published is None:
        return []
    newest = published.results[0].result if published.results else ""
    rows = [[estimate.task, *_summary_cells(published), "all", newest]]
    for group in published.groups[:_MAX_GROUPS] if len(published.groups) > 1 else published.groups[:0]:
        label = ", ".join(map(str, filter(None, (group.setup, group.year))))
        rows.append(["", *_summary_cells(group), label, ""])
    return rows


def _summary_cells(scores: PublishedScores | PublishedGroup) -> list[str]:
    return [str(scores.count), format_number(scores.median), format_interval(scores.low, scores.high)]


def _neighbor_rows(estimate: Estimate) -> list[list[str]]:
    """Return one row per neighbor; the task stands in the first."""
    return [
        [
            estimate.task if position == 0 else "",
            _format_score(neighbor.score),
            neighbor.machine,
            neighbor.published,
            f"{neighbor.distance:.3f}",
        ]
        for position, neighbor in enumerate(estimate.neighbors)
    ]


def _driver_cells(estimate: Estimate, groups: Sequence[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in estimate.drivers}
    return [f"{factors.get(group, 1.0):.2f}" for group in groups]


def _typical_cell(estimate: Estimate) -> str:
    machine = estimate.typical_machine
    return "" if machine is None else f"{machine.machine} (measured {_format_score(machine.score)})"


def _format_score(score: float | None) -> str:
    return "-" if score is None else format_number(score)


def _format_value(value: Value) -> str:
    text = f"{value.value:g}" if isinstance(value.value, float) else value.value
    unit = f" {value.unit}" if value.unit and value.unit not in ("month", "quarter") else ""
    return f"{value.column} {text}{unit}".replace(" ", NO_BREAK)
