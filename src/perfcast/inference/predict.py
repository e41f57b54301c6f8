"""Predict the results of described machines with the champion of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from perfcast.inference.cells import ASSUMED, MEASURED
from perfcast.inference.champion import Champion
from perfcast.inference.explain import Explainer
from perfcast.inference.imputation import ImputedMachines, impute_machines
from perfcast.inference.machine_fields import MONTH, is_month
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.prediction import (
    MAX_RATIO,
    NEVER,
    OK,
    REFUSED,
    DerivedValue,
    Estimate,
    Prediction,
    Predictions,
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
from perfcast.uncertainty.conformal import LEVEL
from perfcast.uncertainty.levels import ErrorRows, outputs_of
from perfcast.utils.errors import UserError
from perfcast.utils.progress import show_progress

_MAX_NAMED = 8
"""Names of measured entities up to which a refusal lists them."""
BATCH_SIZE = 500
"""Machines that are predicted together, so that many machines fit in memory."""


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction.

    `when`: month of the measurement (None: see `Champion.find_month`). `assume`: whether usual values are imputed.
    `neighbors`: number of measured results shown. `explain`: whether to add values and the basis, with `drivers` those
    and the typical machine as well. `tasks`: those with an answer; none means all.
    """

    level: float = LEVEL
    when: pd.Timestamp | None = None
    assume: bool = True
    neighbors: int = 3
    explain: bool = True
    drivers: bool = True
    tasks: tuple[str, ...] = ()


def make_options(
    *,
    level: float | None = None,
    when: str | date | None = None,
    assume: bool = True,
    neighbors: int = PredictOptions.neighbors,
    explain: bool = True,
    prefix: str = "",
) -> PredictOptions:
    """Return the options of a request of a user: commands, HTTP, Python and MLflow have these defaults.

    Args: `level` is LEVEL without a value; `prefix` stands before the names in messages.
    Raises: UserError for a level or a month that cannot be.
    """
    checked = check_level(LEVEL if level is None else level, f"{prefix}level")
    return PredictOptions(checked, read_month(when, f"{prefix}when"), assume, neighbors, explain)


def read_month(when: str | date | None, name: str = "when") -> pd.Timestamp | None:
    """Return the month of a measurement, as `2026-03` or a date; None stays.

    Raises: UserError, which names the option `name`, when it is no month.
    """
    if when is None:
        return None
    text = f"{when:%Y-%m}" if isinstance(when, date) else when
    if not isinstance(text, str) or not is_month(text):
        raise UserError(f"{name} must be {MONTH}", f"it is {when!r}")
    return pd.Timestamp(when)


def check_level(level: float, name: str = "level") -> float:
    """Return the level of intervals. Raises: UserError, which names the option `name`, unless it is inside 0 to 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        fact = f"it is {level:g}" if isinstance(level, (int, float)) else f"it is {level!r}"
        raise UserError(f"{name} must be between 0 and 1", fact, "0.9 means 90 %")
    return float(level)


def predict_batch(
    entries: Sequence[MachineEntry],
    champion: Champion,
    options: PredictOptions,
    measurements: UserMeasurements | None = None,
    *,
    strict: bool = False,
    progress: bool = False,
) -> Predictions:
    """Predict every machine that can be used, see `predict_machines`; the others are refused with their reason.

    Raises: see `parse_batch`.
    """
    machines = parse_batch(entries, champion, strict=strict, asks_capacity=True)
    answer = predict_machines(machines, champion, options, measurements, progress=progress)
    by_line: dict[int, list[Prediction]] = {entry.line: [] for entry in entries}
    for prediction in answer.machines:
        line = machines.machines[prediction.line].line
        by_line[line].append(replace(prediction, line=line))
    for entry in entries:
        if entry.line in machines.refusals:
            message = str(machines.refusals[entry.line])
            by_line[entry.line] = [Prediction(entry.line, entry.label, (), status=REFUSED, message=message)]
    listed = tuple(replace(each, carried=entry.plain_carried) for entry in entries for each in by_line[entry.line])
    return replace(answer, machines=name_tasks(listed, champion.rules.names.task_titles))


def predict_machines(
    machines: ParsedMachines,
    champion: Champion,
    options: PredictOptions = PredictOptions(),
    measurements: UserMeasurements | None = None,
    *,
    progress: bool = False,
) -> Predictions:
    """Predict every machine for its task, or for all tasks where it names none, in batches.

    A task has predictions for the targets that it was measured in, see `Predictor`; user measurements correct all
    predictions. `progress` shows a bar on a terminal.
    """
    predictions: list[Prediction] = []
    notes = {key: machine.notes for key, machine in machines.machines.items()}
    for rows in batches(len(machines.known.codes), progress=progress):
        batch = replace(machines, known=machines.known.take(rows))
        imputed = impute_machines(batch, champion, options.when, assume=options.assume)
        predictions += MachineAnswers(imputed, champion, options, measurements).list_predictions(notes)
    inputs = select(champion.predictor.columns_, role=Role.FEATURE)
    return Predictions(
        *champion.identity,
        tuple(predictions),
        len(inputs),
        bases=(champion.basis,),
        month=champion.name_month(options.when),
    )


class Correction(NamedTuple):
    """Addition of known errors to the logarithms of the predictions of a target, and their factor of the widths.

    `later` is the addition of results after training alone. Shapes: (n,) each.
    """

    shift: np.ndarray
    narrowing: np.ndarray
    later: np.ndarray


class MachineAnswers:
    """Answers about completed machines: `predicted` by `champion`, with the `corrections` by target.

    `is_corrected` is whether user measurements are part of the corrections.
    """

    def __init__(
        self,
        imputed: ImputedMachines,
        champion: Champion,
        options: PredictOptions,
        measurements: UserMeasurements | None = None,
    ) -> None:
        self.imputed, self.champion, self.options, self.measurements = imputed, champion, options, measurements
        self.predicted = predicted = MachinePredictions(imputed, champion)
        self.explainer = Explainer(
            predicted,
            champion,
            neighbors=options.neighbors,
            explain=options.explain,
            drivers=options.explain and options.drivers,
        )
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
        shift, narrowed = later + beyond, np.minimum(narrowing, narrowed)
        of_other_tasks = ~np.isin(outputs, measurements.outputs)
        away = of_other_tasks & self.explainer.moves_away(predicted.medians[:, number], shift, target)
        return Correction(np.where(away, later, shift), np.where(away, narrowing, narrowed), later)

    def list_predictions(self, notes: Mapping[int, tuple[str, ...]] = MappingProxyType({})) -> list[Prediction]:
        """Return the predictions in the order of the machines; `notes` by key are added."""
        by_line: dict[int, list[tuple[int, Estimate]]] = {}
        for row, estimate in _estimate(self):
            by_line.setdefault(int(self.predicted.completed.cells.index[row]), []).append((row, estimate))
        shared_notes = self.measurements.notes if self.measurements else ()
        return [_answer(line, made, self, (*notes.get(line, ()), *shared_notes)) for line, made in by_line.items()]


def _answer(
    line: int, made: Sequence[tuple[int, Estimate]], answers: MachineAnswers, notes: tuple[str, ...]
) -> Prediction:
    """Return the prediction of one machine from its estimates by row, with `notes` after those of its own."""
    predicted, champion = answers.predicted, answers.champion
    estimates, refusals = list[Estimate](), list[Unpredicted]()
    for row, each in made:
        if row in predicted.impossible:
            reason = f"{each.task} cannot be predicted: {predicted.impossible[row]}"
            refusals.append(Unpredicted(each.task, each.target, reason))
            continue
        is_share = bool(np.isfinite(predicted.highest[row])) or each.unit.startswith("share")
        if reason := explain_refusal(each, champion, is_share=is_share):
            refusals.append(Unpredicted(each.task, each.target, reason))
        else:
            estimates.append(each)
    described = answers.explainer.describe([row for row, _ in made])
    cells = {column: values[made[0][0]] for column, values in predicted.completed.cells.items()}
    scores = {each.task: (each.median, each.low, each.high) for each in estimates}
    origins = predicted.completed.has_origin(ASSUMED, MEASURED)[made[0][0]].tolist()
    assumed = [column for column, is_assumed in zip(cells, origins, strict=True) if is_assumed]
    shown = champion.rules.presentation
    further = (*shown.list_assumed_notes(cells, assumed), *shown.list_completed_notes(cells))
    derived, wide = derive_values(shown.derived, scores, cells)
    further = (*further, *wide)
    kinds = [kind for kind in champion.rules.limits.list_kinds(cells) if not champion.has_measured(kind, cells)]
    if kinds:
        further = (f"never measured: {', '.join(kinds)}", *further)
        estimates = [replace(each, trust=NEVER) for each in estimates]
    if reason := champion.limit_trust(cells):
        estimates = [replace(each, trust=cap_trust(each.trust, reason)) for each in estimates]
    reasons = [each.message for each in refusals]
    formula = " x ".join(("estimate", *shown.score_columns))
    size = shown.size_of(cells) if shown.score_columns else 0.0
    totals = [
        DerivedValue(f"{each.task} of the whole machine", each.median, each.low, each.high, each.unit, formula)
        for each in (each.times(size) for each in estimates if size > 0)
    ]
    outside = list_outside(name_tasks(tuple(estimates), champion.rules.names.task_titles))
    return Prediction(
        line,
        **described,
        estimates=tuple(estimates),
        notes=(*outside, *(reasons if estimates else ()), *further, *notes),
        status=OK if estimates else REFUSED,
        message="" if estimates else "; ".join(reasons),
        derived=(*derived, *totals),
        unpredicted=tuple(refusals),
    )


def explain_refusal(estimate: Estimate, champion: Champion, *, is_share: bool) -> str:
    """Return why an output cannot be predicted, "" where it can: its interval is too wide to tell anything.

    Shares and accuracies may be near 0, so no ratio is too large for them.
    """
    low, high, measured = estimate.low, estimate.high, champion.reference_data.measured
    if is_share or low is None or high is None or not is_too_wide(low, high):
        return ""
    entity = measured.column_of(Tag.ENTITY)
    known = sorted(set(measured.frame[entity].dropna().astype(str)))
    names = ", ".join(known) if len(known) <= _MAX_NAMED else f"{len(known)} of them"
    reason = estimate.trust.partition(": ")[2]
    far = f" ({reason})" if reason else ""
    return (
        f"{estimate.task} cannot be predicted: its {100 * estimate.level:g} % interval would span a factor of "
        f"{high / low:.3g}, more than {MAX_RATIO:g}{far}; measured {entity}: {names}; give a result of it (--measured)"
    )


def _estimate(answers: MachineAnswers) -> list[tuple[int, Estimate]]:
    """Return the row and the estimate of every output, in the order of rows."""
    predicted, champion, options, explainer = answers.predicted, answers.champion, answers.options, answers.explainer
    table, X = predicted.table, predicted.table.frame
    units = {column.name: column.unit for column in table.columns}
    inputs = [column.name for column in select(champion.predictor.columns_, role=Role.FEATURE)]
    missing = X[inputs].isna().to_numpy().sum(axis=1).tolist()
    assumed = predicted.completed.has_origin(ASSUMED).sum(axis=1).tolist()
    tasks = X[table.column_of(Tag.TASK)].astype(str).tolist()
    nothing = pd.DataFrame({"in_domain_score": None, "least_similar_group": ""}, index=X.index, dtype=object)
    lowest, highest = predicted.lowest, predicted.highest
    estimates = []
    for number, target in enumerate(champion.predictor.targets_):
        intervals = predicted.intervals(number, options.level)
        shift, narrowing, later = answers.corrections[number]
        medians = np.clip(predicted.medians[:, number] * np.exp(shift), lowest, highest)
        ends = np.full((2, len(X)), None, dtype=object)
        if intervals is not None:
            below, above = (narrowing * intervals[name].to_numpy() for name in ("below", "above"))
            ends = np.clip([medians * np.exp(-below), medians * np.exp(above)], lowest, highest)
        similarity = nothing if intervals is None else intervals
        columns = (
            medians,
            *ends,
            np.exp(shift - later),
            similarity["in_domain_score"],
            similarity["least_similar_group"],
        )
        for row, (median, low, high, factor, score, group) in enumerate(
            zip(*(values.tolist() for values in columns), strict=True)
        ):
            if not predicted.has_output[row, number] or (options.tasks and tasks[row] not in options.tasks):
                continue
            estimate = Estimate(
                task=tasks[row],
                target=target,
                median=median,
                low=low,
                high=high,
                level=options.level,
                unit=champion.rules.presentation.task_units.get(tasks[row], units[target]),
                in_domain_score=score,
                trust=rate_trust(score, group),
                missing=missing[row],
                assumed=assumed[row],
                user_factor=factor if answers.is_corrected else None,
                **explainer.explain(row, target, low, high),
            )
            estimates.append((row, estimate))
    return sorted(estimates, key=lambda pair: pair[0])


def batches(total: int, *, progress: bool = False) -> Iterator[np.ndarray]:
    """Yield the numbers of the machines of every batch, with a progress bar on a terminal."""
    with show_progress() if progress else nullcontext() as show:
        for start in range(0, total, BATCH_SIZE):
            if show is not None:
                show("machines", start, total)
            yield np.arange(start, min(start + BATCH_SIZE, total))
