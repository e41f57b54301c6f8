"""Answers of one champion about a batch of machines: a frame of estimates, and the predictions that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, MEASURED
from perfcast.inference.champion import Champion
from perfcast.inference.explain import Explainer
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.options import PredictOptions
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.prediction import (
    MAX_RATIO,
    NEVER,
    OK,
    REFUSED,
    DerivedValue,
    Estimate,
    Prediction,
    Unpredicted,
    cap_trust,
    derive_values,
    is_too_wide,
    list_outside,
    name_tasks,
    rate_trust,
)
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Role, Tag, select
from perfcast.uncertainty.levels import ErrorRows, outputs_of, shared_labels

_MAX_NAMED = 8
"""Names of measured entities up to which a refusal lists them."""
_OF_ESTIMATES = tuple(Estimate.__dataclass_fields__)


class Correction(NamedTuple):
    """Addition of known errors to the logarithms of the predictions of a target, and their factor of the widths.

    `later` is the addition of results after training alone. Shapes: (n,) each.
    """

    shift: np.ndarray
    narrowing: np.ndarray
    later: np.ndarray


class SuiteAnswers:
    """Answers of a champion about a batch of machines: `predicted`, with the `corrections` by target.

    `is_corrected` is whether user measurements are part of the corrections.
    """

    def __init__(
        self,
        machines: ParsedMachines,
        champion: Champion,
        options: PredictOptions,
        measurements: UserMeasurements | None = None,
    ) -> None:
        self.champion, self.options, self.measurements = champion, options, measurements
        imputed = impute_machines(machines, champion, options.when, assume=options.assume)
        self.predicted = MachinePredictions(imputed, champion)
        self.explainer = Explainer(
            self.predicted,
            champion,
            neighbors=options.neighbors,
            explain=options.explain,
            drivers=options.explain and options.drivers,
        )
        self.keys = self.predicted.completed.cells.index
        self.tasks = self.predicted.completed.cells[champion.task].astype(str)
        self.is_corrected = measurements is not None
        self.corrections = [self._correct(number) for number in range(len(champion.predictor.targets_))]

    def _correct(self, number: int) -> Correction:
        """Return the correction of the predictions of a target."""
        predicted, measurements = self.predicted, self.measurements
        later, narrowing = self.explainer.find_later(number)
        if measurements is None:
            return Correction(later, narrowing, later)
        table, target = predicted.table, self.champion.predictor.targets_[number]
        outputs = outputs_of(table.frame[table.column_of(Tag.TASK)], target)
        beyond, narrowed = measurements.known.predict(ErrorRows.of(table, outputs))
        shift = later + beyond
        narrowed = np.minimum(narrowing, narrowed)
        of_other_tasks = ~np.isin(outputs, measurements.outputs)
        away = of_other_tasks & self.explainer.moves_away(predicted.medians[:, number], shift, target)
        return Correction(np.where(away, later, shift), np.where(away, narrowing, narrowed), later)

    def move(self, added: np.ndarray) -> None:
        """Add to the logarithms of the predictions of the first target, (n,), where that leads to published results."""
        correction, target = self.corrections[0], self.champion.predictor.targets_[0]
        away = self.explainer.moves_away(self.predicted.medians[:, 0], added, target)
        self.corrections[0] = correction._replace(shift=correction.shift + np.where(away, 0.0, added))
        self.is_corrected = True

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """The estimates of every machine, task and target, in the order of rows.

        `machine` is its key, `row` that of the machine by task, `message` why there is no answer, "" where there is
        one; the other columns are the fields of `Estimate`.
        """
        targets = range(len(self.champion.predictor.targets_))
        frame = pd.concat([self._estimate(number) for number in targets], ignore_index=True)
        if len(targets) > 1:
            frame = frame.sort_values("row", kind="stable", ignore_index=True)
        frame["message"] = self._list_refusals(frame)
        frame["trust"] = self._list_trust(frame)
        return frame

    def _estimate(self, number: int) -> pd.DataFrame:
        """Return the estimates of a target."""
        predicted, champion, options = self.predicted, self.champion, self.options
        target, units = champion.predictor.targets_[number], champion.rules.presentation.task_units
        unit = next(column.unit for column in predicted.table.columns if column.name == target)
        is_answered = predicted.has_output[:, number]
        if options.tasks:
            is_answered = is_answered & np.isin(self.tasks, options.tasks)
        rows = np.flatnonzero(is_answered)
        shift, narrowing, later = (each[rows] for each in self.corrections[number])
        ends = predicted.lowest[rows], predicted.highest[rows]
        medians = np.clip(predicted.medians[rows, number] * np.exp(shift), *ends)
        columns: dict[str, Any] = {
            "machine": self.keys[rows],
            "row": rows,
            "task": self.tasks[rows],
            "target": target,
            "median": medians,
            "low": None,
            "high": None,
            "level": options.level,
            "unit": [units.get(task, unit) for task in self.tasks[rows].tolist()],
            "in_domain_score": None,
            "trust": "",
            "missing": self._count_missing()[rows],
            "assumed": predicted.completed.has_origin(ASSUMED).sum(axis=1)[rows],
            "user_factor": np.exp(shift - later) if self.is_corrected else None,
        }
        intervals = predicted.intervals(number, options.level)
        if intervals is not None:
            intervals = intervals.iloc[rows]
            scores, groups = intervals["in_domain_score"].tolist(), intervals["least_similar_group"].tolist()
            below, above = (narrowing * intervals[name].to_numpy() for name in ("below", "above"))
            columns |= {
                "low": np.clip(medians * np.exp(-below), *ends),
                "high": np.clip(medians * np.exp(above), *ends),
                "in_domain_score": scores,
                "trust": [rate_trust(score, group) for score, group in zip(scores, groups, strict=True)],
            }
        frame = pd.DataFrame(columns, range(len(rows)))
        spans = list_rows(frame, ["row", "low", "high"])
        explained = [self.explainer.explain(row, target, low, high) for row, low, high in spans]
        for name in explained[0] if explained else ():
            frame[name] = pd.Series([each[name] for each in explained], dtype=object)
        return frame

    def _count_missing(self) -> np.ndarray:
        """Return how many features of every row have no value, (n,)."""
        frame = self.predicted.table.frame
        inputs = [column.name for column in select(self.champion.predictor.columns_, role=Role.FEATURE)]
        return np.asarray(frame[inputs].isna().to_numpy().sum(axis=1))

    def _list_refusals(self, frame: pd.DataFrame) -> list[str]:
        """Return why every output cannot be predicted, "" where it can."""
        predicted = self.predicted
        is_bounded = np.isfinite(predicted.highest).tolist()
        messages = []
        for row, task, low, high, trust, unit in list_rows(frame, ["row", "task", "low", "high", "trust", "unit"]):
            if row in predicted.impossible:
                messages.append(f"{task} cannot be predicted: {predicted.impossible[row]}")
            # shares and accuracies may be near 0, so no ratio is too large for them
            elif is_bounded[row] or unit.startswith("share") or low is None or not is_too_wide(low, high):
                messages.append("")
            else:
                messages.append(f"{task} cannot be predicted: {self._describe_width(high / low, trust)}")
        return messages

    def _describe_width(self, factor: float, trust: str) -> str:
        """Return that an interval is too wide to tell anything, and what would narrow it."""
        entity = self.champion.entity
        names = sorted(self.champion.measured_entities)
        measured = ", ".join(names) if len(names) <= _MAX_NAMED else f"{len(names)} of them"
        reason = trust.partition(": ")[2]
        far = f" ({reason})" if reason else ""
        return (
            f"its {100 * self.options.level:g} % interval would span a factor of {factor:.3g}, more than "
            f"{MAX_RATIO:g}{far}; measured {entity}: {measured}; give a result of it (--measured)"
        )

    def _list_trust(self, frame: pd.DataFrame) -> list[str]:
        """Return the trust of every output, after what limits it for its machine."""
        limit_of: dict[int, tuple[bool, str]] = {}
        for machine, row in zip(frame["machine"], frame["row"], strict=True):
            if machine not in limit_of:
                cells = self._read_cells(row)
                limit_of[machine] = bool(self._list_unmeasured(cells)), self.champion.limit_trust(cells)
        trusts = []
        for machine, trust in zip(frame["machine"], frame["trust"], strict=True):
            is_new, reason = limit_of[machine]
            limited = NEVER if is_new else trust
            trusts.append(cap_trust(limited, reason) if reason else limited)
        return trusts

    @cached_property
    def _assumed(self) -> list[list[bool]]:
        """The columns whose value is assumed, by row, as flags."""
        assumed: list[list[bool]] = self.predicted.completed.has_origin(ASSUMED, MEASURED).tolist()
        return assumed

    def _read_cells(self, row: int) -> dict[str, Any]:
        return {column: values[row] for column, values in self.predicted.completed.cells.items()}

    def _list_unmeasured(self, cells: Mapping[str, Any]) -> list[str]:
        """Return the kinds of a machine that were never measured."""
        kinds = self.champion.rules.limits.list_kinds(cells)
        return [kind for kind in kinds if not self.champion.has_measured(kind, cells)]

    @property
    def errors(self) -> ErrorRows:
        """The errors of the rows of `estimates`, for their correlations."""
        labels = shared_labels(self.predicted.table).iloc[self.estimates["row"]].reset_index(drop=True)
        return ErrorRows(labels, outputs_of(self.estimates["task"], self.estimates["target"]))

    def list_predictions(self, notes: Mapping[int, Sequence[str]]) -> list[Prediction]:
        """Return the predictions in the order of the machines; `notes` by key are added."""
        shared = self.measurements.notes if self.measurements else ()
        frame = self.estimates
        outputs: dict[int, list[tuple[int, Estimate, str]]] = {}
        listed = zip(frame["row"].tolist(), list_estimates(frame), frame["message"].tolist(), strict=True)
        for key, output in zip(frame["machine"].tolist(), listed, strict=True):
            outputs.setdefault(key, []).append(output)
        return [self._show(key, made, (*notes.get(key, ()), *shared)) for key, made in outputs.items()]

    def _show(self, key: int, made: Sequence[tuple[int, Estimate, str]], notes: tuple[str, ...]) -> Prediction:
        """Return the prediction of one machine from its rows, estimates and messages, and `notes` after its own."""
        champion, rows = self.champion, [row for row, _, _ in made]
        estimates = tuple(each for _, each, message in made if not message)
        refusals = tuple(Unpredicted(each.task, each.target, message) for _, each, message in made if message)
        cells = self._read_cells(rows[0])
        assumed = [column for column, is_assumed in zip(cells, self._assumed[rows[0]], strict=True) if is_assumed]
        shown = champion.rules.presentation
        scores = {each.task: (each.median, each.low, each.high) for each in estimates}
        derived, wide = derive_values(shown.derived, scores, cells)
        unmeasured = self._list_unmeasured(cells)
        further = [f"never measured: {', '.join(unmeasured)}"] if unmeasured else []
        further += [*shown.list_assumed_notes(cells, assumed), *shown.list_completed_notes(cells), *wide]
        reasons = [each.message for each in refusals]
        outside = list_outside(name_tasks(estimates, champion.rules.names.task_titles))
        return Prediction(
            key,
            **self.explainer.describe(rows),
            estimates=estimates,
            notes=(*outside, *(reasons if estimates else ()), *further, *notes),
            status=OK if estimates else REFUSED,
            message="" if estimates else "; ".join(reasons),
            derived=(*derived, *self._sum_units(estimates, cells)),
            unpredicted=refusals,
        )

    def _sum_units(self, estimates: Sequence[Estimate], cells: Mapping[str, Any]) -> list[DerivedValue]:
        """Return the scores of the whole machine, where those of a dataset are of one of its units."""
        shown = self.champion.rules.presentation
        size = shown.size_of(cells) if shown.score_columns else 0.0
        formula = " x ".join(("estimate", *shown.score_columns))
        return [
            DerivedValue(f"{each.task} of the whole machine", each.median, each.low, each.high, each.unit, formula)
            for each in (each.times(size) for each in estimates if size > 0)
        ]


def list_estimates(frame: pd.DataFrame) -> tuple[Estimate, ...]:
    """Return rows of `SuiteAnswers.estimates` as estimates."""
    names = [name for name in _OF_ESTIMATES if name in frame]
    return tuple(Estimate(**dict(zip(names, row, strict=True))) for row in list_rows(frame, names))


def list_rows(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of every row in some columns, None where one is missing."""
    columns = (frame[name].tolist() for name in names)
    # NaN alone differs from itself
    known = ([None if cell != cell else cell for cell in cells] for cells in columns)  # noqa: PLR0124
    return zip(*known, strict=True)
