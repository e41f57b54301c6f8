"""Impute the missing cells of parsed machines, and record the origin of every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.inference.champion import Champion
from perfcast.inference.imputation import Violation
from perfcast.inference.machine_fields import TypedField
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Table, Tag
from perfcast.utils.errors import UserError

GIVEN, LOOKED_UP, IMPLIED, MEASURED, ASSUMED, MISSING = (
    "given",
    "looked up",
    "implied",
    "measured",
    "assumed",
    "missing",
)
ORIGINS = {
    GIVEN: "as described",
    LOOKED_UP: "a fact of the CPU model, from the catalog or its family",
    MEASURED: "all measured results of the CPU model, or of the task, have it",
    IMPLIED: "follows from other values of the machine",
    ASSUMED: "usual: most recent measured machines of the kind have it",
    MISSING: "unknown",
}
"""Origins of a value and their meaning."""


@dataclass(frozen=True)
class CompletedMachines:
    """Batch of machines by task with every standard column.

    Shapes: `frame` and `origins` (text, of ORIGINS) have the same rows and columns; the index is that of the machines,
    repeated by task.
    """

    frame: pd.DataFrame
    origins: pd.DataFrame


def impute(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> CompletedMachines:
    """Fill missing cells; given cells stay. A machine without a task stands once for every task.

    In this order: facts of the CPU model, values that all measured rows of the model have, values that the row implies,
    values that all measured rows of the task have, and, with `assume`, usual values and what they imply.

    Raises: UserError for an unknown task or a machine that breaks a limit of the dataset's rules.
    """
    with np.errstate(invalid="ignore"):  # comparisons with missing cells
        steps = _impute_known(machines.frame, champion)
        for _, error in _list_errors(steps.frame, machines, champion):
            raise error
        _repeat_by_task(steps, champion)
        return _assume(steps, champion, assume=assume)


@dataclass(frozen=True)
class DrawnMachines:
    """Draws of a batch of machines by task, machine by machine, with equal draws once.

    Shapes: `completed` has one row per distinct draw, (k,); `owners` (k,) numbers of the machines by task, from 0;
    `weights` (k,) shares that sum to 1 per machine.
    """

    completed: CompletedMachines
    owners: np.ndarray
    weights: np.ndarray


def impute_draws(machines: ParsedMachines, champion: Champion, *, assume: bool = True) -> DrawnMachines:
    """Fill missing cells as `impute`, but draw what must be assumed jointly from measured set-ups, several times.

    A machine without a missing cell, and one of a dataset without rules of draws, has one draw.
    Raises: see `impute`.
    """
    with np.errstate(invalid="ignore"):
        steps = _impute_known(machines.frame, champion)
        for _, error in _list_errors(steps.frame, machines, champion):
            raise error
        _repeat_by_task(steps, champion)
        deck = champion.joint_deck if assume else None
        count = len(steps.frame)
        owners, weights = np.arange(count), np.ones(count)
        if deck is not None:
            drawn, donor_rows = deck.draw(steps.frame)
            pairs = pd.DataFrame({"owner": drawn, "donor": donor_rows}).value_counts(sort=False).reset_index()
            single = np.setdiff1d(owners, drawn)
            everyone = pd.concat([pairs, pd.DataFrame({"owner": single, "donor": -1, "count": 1})])
            everyone = everyone.sort_values(["owner", "donor"], kind="stable", ignore_index=True)
            owners, donor_rows = everyone["owner"].to_numpy(dtype=int), everyone["donor"].to_numpy(dtype=int)
            weights = (everyone["count"] / everyone.groupby("owner")["count"].transform("sum")).to_numpy()
            steps.repeat(owners)
            filled = deck.fill(steps.frame.iloc[donor_rows >= 0].reset_index(drop=True), donor_rows[donor_rows >= 0])
            steps.take(_replace_rows(steps.frame, donor_rows >= 0, filled), ASSUMED)
            steps.conclude(champion.rules.fill_implied, IMPLIED)
        return DrawnMachines(_assume(steps, champion, assume=assume), owners, weights)


def _replace_rows(frame: pd.DataFrame, rows: np.ndarray, replacement: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with some rows replaced. Shapes: rows (n,) bool, replacement (rows.sum(), columns)."""
    if rows.all():
        return replacement.set_axis(frame.index)
    unchanged = frame.iloc[~rows].reset_index(drop=True)
    order = np.empty(len(frame), dtype=int)
    order[np.concatenate([np.flatnonzero(~rows), np.flatnonzero(rows)])] = np.arange(len(frame))
    return pd.concat([unchanged, replacement], ignore_index=True).iloc[order].set_axis(frame.index)


def find_unknown(completed: CompletedMachines, table: Table, champion: Champion) -> pd.DataFrame:
    """Return which cells are missing or follow from assumed ones, (n, columns) bool.

    The latter are the cells that change when assumed and implied cells are cleared, implied anew, and features rebuilt.
    Shapes: `table` has the rows of `completed` with features; the result has its index and columns.
    """
    origins = completed.origins
    if not (origins.to_numpy() == ASSUMED).any():
        return table.frame.isna()
    cleared = completed.frame.copy(deep=False)
    for name in cleared:
        unsure = origins[name].isin((ASSUMED, IMPLIED))
        if unsure.any():
            cleared[name] = cleared[name].mask(unsure)
    with np.errstate(invalid="ignore"):
        known = champion.build_features(champion.rules.fill_implied(cleared)).frame
    unknown = {
        name: cells.isna().to_numpy() | (known[name].to_numpy(dtype=object) != cells.to_numpy(dtype=object))
        for name, cells in table.frame.items()
    }
    return pd.DataFrame(unknown, index=table.frame.index)


def find_refusals(machines: ParsedMachines, champion: Champion) -> dict[int, UserError]:
    """Return by line (index) the first error of every machine that breaks a limit or names an unknown task."""
    refusals: dict[int, UserError] = {}
    with np.errstate(invalid="ignore"):
        frame = _impute_known(machines.frame, champion).frame
        for line, error in _list_errors(frame, machines, champion):
            refusals.setdefault(line, error)
    return refusals


def _list_errors(frame: pd.DataFrame, machines: ParsedMachines, champion: Champion) -> Iterator[tuple[int, UserError]]:
    """Yield line and error of every limit that a machine breaks, then of every unknown task."""
    for violation in champion.rules.find_violations(frame):
        field, fact = _name_field(violation, machines, frame, champion)
        label = machines.label_of(violation.line)
        text = f"{fact} ({label})" if label[-1:].isdigit() else fact
        yield violation.line, UserError(field, text, violation.remedy)
    task = champion.reference_data.measured.column_of(Tag.TASK)
    unknown = frame.loc[frame[task].notna() & ~frame[task].isin(champion.tasks), task]
    for number, name in unknown.items():
        line = int(str(number))
        typed = machines.typed.get(line, {}).get(task, TypedField(task, str(name)))
        fact = f"{machines.label_of(line)} has {typed.text!r}"
        yield line, UserError(f"{typed.name} must be one of {', '.join(champion.tasks)}", fact, "or leave it out")


def find_first_violations(machines: ParsedMachines, champion: Champion) -> dict[int, str]:
    """Return by line (index) the first limit that a machine breaks."""
    reasons: dict[int, str] = {}
    with np.errstate(invalid="ignore"):
        frame = _impute_known(machines.frame, champion).frame
        for violation in champion.rules.find_violations(frame):
            if violation.line not in reasons:
                reasons[violation.line] = ": ".join(_name_field(violation, machines, frame, champion))
    return reasons


def _name_field(
    violation: Violation, machines: ParsedMachines, frame: pd.DataFrame, champion: Champion
) -> tuple[str, str]:
    """Return the wrong field as the user typed it, and the fact with the name of the CPU model."""
    typed = machines.typed.get(violation.line, {})
    first = violation.columns[0]
    field = next((typed[name].name for name in violation.columns if name in typed), champion.fields.name_of(first))
    entity = champion.reference_data.measured.column_of(Tag.ENTITY)
    key = frame.loc[frame.index == violation.line, entity].iloc[0]
    cpu = typed.get(entity, TypedField(entity, "the processor" if pd.isna(key) else str(key))).text
    return field, violation.fact.replace("{cpu}", cpu)


class _Steps:
    """Frame that is filled in steps, with the origin of every cell."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._names = list(frame.columns)
        self._missing = frame.isna().to_numpy()
        self._origins = np.where(self._missing, MISSING, GIVEN).astype(object)
        self._fills_at_conclusion: dict[str, int] = {}
        self._fills = 0

    def take(self, filled: pd.DataFrame, origin: str) -> None:
        """Take the result of a step: the same columns in the same order, with the known cells unchanged."""
        self.frame, before = filled, self.frame
        if filled is before:
            return
        for position in np.flatnonzero(self._missing.any(axis=0)):
            new = self._missing[:, position] & ~np.asarray(filled[self._names[position]].array.isna())
            if new.any():
                self._missing[new, position] = False
                self._origins[new, position] = origin
                self._fills += 1

    def conclude(self, rule: Callable[[pd.DataFrame], pd.DataFrame], origin: str) -> None:
        """Take the result of a rule, unless no cell was filled since the rule of this origin last ran."""
        if self._fills_at_conclusion.get(origin) != self._fills:
            self.take(rule(self.frame), origin)
            self._fills_at_conclusion[origin] = self._fills

    def repeat(self, positions: np.ndarray) -> None:
        """Repeat rows, (m,) int of row numbers."""
        self.frame = self.frame.iloc[positions]
        self._missing, self._origins = self._missing[positions], self._origins[positions]

    @property
    def origins(self) -> pd.DataFrame:
        """The origin of every cell."""
        return pd.DataFrame(self._origins, self.frame.index, self.frame.columns, dtype=object)


def _impute_known(frame: pd.DataFrame, champion: Champion) -> _Steps:
    """Fill what does not depend on the task: facts of the CPU model, and what a row implies."""
    reference_data, rules = champion.reference_data, champion.rules
    measured = reference_data.measured.frame
    unstated = measured.select_dtypes("datetime").columns.difference(frame.columns)
    dates = {name: measured[name].dtype for name in unstated}
    steps = _Steps(frame.reindex(columns=measured.columns).astype(dates))
    steps.take(rules.fill_cpu_facts(steps.frame, reference_data.cpu_facts), LOOKED_UP)
    steps.take(_fill_common(steps.frame, reference_data, Tag.ENTITY), MEASURED)
    steps.conclude(rules.fill_implied, IMPLIED)
    return steps


def _repeat_by_task(steps: _Steps, champion: Champion) -> None:
    """Repeat machines by task, and fill what all measured rows of the task have."""
    measured = champion.reference_data.measured
    names = steps.frame[measured.column_of(Tag.TASK)]
    tasks = [champion.tasks if pd.isna(name) else [str(name)] for name in names]
    steps.repeat(np.repeat(np.arange(len(tasks)), [len(names) for names in tasks]))
    repeated = pd.Series([name for names in tasks for name in names], steps.frame.index, dtype="str")
    steps.take(steps.frame.assign(**{measured.column_of(Tag.TASK): repeated}), GIVEN)
    steps.take(_fill_common(steps.frame, champion.reference_data, Tag.TASK), MEASURED)


def _assume(steps: _Steps, champion: Champion, *, assume: bool) -> CompletedMachines:
    """Fill usual values, and what they imply."""
    rules = champion.rules
    if assume:
        for block in rules.blocks:
            steps.take(champion.hot_deck.fill(steps.frame, block), ASSUMED)
            steps.conclude(rules.fill_implied, IMPLIED)
            steps.conclude(lambda frame: rules.fill_usual(frame, champion.hot_deck.last), ASSUMED)
        steps.conclude(rules.fill_implied, IMPLIED)
    return CompletedMachines(steps.frame, steps.origins)


def _fill_common(machines: pd.DataFrame, reference_data: ReferenceData, tag: Tag) -> pd.DataFrame:
    """Fill missing features of the tagged column's group with the value that all its measured rows have."""
    values = machines[reference_data.measured.column_of(tag)]
    common = {value: reference_data.find_common_values(tag, str(value)) for value in values.dropna().unique()}
    filled = {}
    for name in dict.fromkeys(name for cells in common.values() for name in cells):
        column = machines[name]
        if column.isna().any():
            facts = values.map({value: cells[name] for value, cells in common.items() if name in cells})
            filled[name] = column.where(column.notna(), facts.astype(column.dtype))
    return machines.assign(**filled) if filled else machines
