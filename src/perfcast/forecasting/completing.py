"""Fill a description as far as something is known, and remember of every cell where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.errors import UserError
from perfcast.forecasting.donors import Donors
from perfcast.forecasting.knowledge import Knowledge, completion_of
from perfcast.schema import Role, Table, Tag

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
    LOOKED_UP: "a fact of the named part, from the catalogue or its family",
    MEASURED: "all measured results of the part, or of the task, have it",
    IMPLIED: "follows from other values of the machine",
    ASSUMED: "usual where nothing is said: as most recent measured machines of the kind have it",
    MISSING: "unknown",
}
"""Where a value can come from, and what that means."""


@dataclass(frozen=True)
class Completed:
    """Machines by task with every standard column.

    Shapes: `frame` and `origins` (text, of ORIGINS) have the same rows and columns; the index is that of the machines,
    repeated by task.
    """

    frame: pd.DataFrame
    origins: pd.DataFrame


class _Filling:
    """A frame that is filled in steps; whatever a step fills gets its origin."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        known = frame.notna().to_numpy()
        self.origins = pd.DataFrame(np.where(known, GIVEN, MISSING), frame.index, frame.columns, dtype=object)

    def step(self, filled: pd.DataFrame, origin: str) -> None:
        """Take what a step made of the frame."""
        new = self.frame.isna().to_numpy() & filled.notna().to_numpy()
        self.origins = self.origins.mask(new, origin)
        self.frame = filled

    def repeat(self, positions: np.ndarray) -> None:
        """Repeat rows, (m,) int of row numbers."""
        self.frame, self.origins = self.frame.iloc[positions], self.origins.iloc[positions]


def complete(machines: pd.DataFrame, knowledge: Knowledge, donors: Donors | None) -> Completed:
    """Fill missing cells, given ones winning; a machine without a task stands once for every task.

    In this order: facts of the named part, what the measured rows of the part agree on, what a row implies itself, what
    the measured rows of the task agree on, what is usual, what that implies. Without `donors` nothing is assumed.

    Raises: UserError when a task is not one of the data set's, or a machine cannot be.
    """
    with np.errstate(invalid="ignore"):  # comparisons with what is missing
        return _complete(machines, knowledge, donors)


def refused(machines: pd.DataFrame, knowledge: Knowledge) -> dict[int, str]:
    """Return why machines cannot be, by line (index): the first rule that each breaks, and the values it has."""
    module = completion_of(knowledge.measured.dataset)
    reasons: dict[int, str] = {}
    if module:
        with np.errstate(invalid="ignore"):
            for line, requirement, found in module.refusals(_known(machines, knowledge).frame):
                reasons.setdefault(int(line), f"{requirement}: it has {found}")
    return reasons


def _known(machines: pd.DataFrame, knowledge: Knowledge) -> _Filling:
    """Fill what is known of the machines whatever their task: facts of the part, and what a row implies itself."""
    measured = knowledge.measured
    module = completion_of(measured.dataset)
    filling = _Filling(machines.reindex(columns=[column.name for column in measured.columns]))
    if module:
        filling.step(module.complete_part(filling.frame, knowledge.parts), LOOKED_UP)
    filling.step(_agreed(filling.frame, measured, Tag.ENTITY), MEASURED)
    if module:
        filling.step(module.complete_machine(filling.frame), IMPLIED)
    return filling


def _complete(machines: pd.DataFrame, knowledge: Knowledge, donors: Donors | None) -> Completed:
    measured = knowledge.measured
    module = completion_of(measured.dataset)
    filling = _known(machines, knowledge)
    if module:
        module.refuse(filling.frame)
    tasks = _tasks(filling.frame, measured)
    filling.repeat(np.repeat(np.arange(len(tasks)), [len(one) for one in tasks]))
    name = measured.one(Tag.TASK)
    asked = pd.Series([task for one in tasks for task in one], filling.frame.index, dtype="str")
    filling.step(filling.frame.assign(**{name: asked}), GIVEN)
    filling.step(_agreed(filling.frame, measured, Tag.TASK), MEASURED)
    if module and donors is not None:
        for block in module.BLOCKS:
            filling.step(donors.fill(filling.frame, block), ASSUMED)
            filling.step(module.complete_machine(filling.frame), IMPLIED)
            filling.step(module.assume(filling.frame, donors.last), ASSUMED)
        filling.step(module.complete_machine(filling.frame), IMPLIED)
    return Completed(filling.frame, filling.origins)


def _tasks(machines: pd.DataFrame, measured: Table) -> list[Sequence[str]]:
    """Return the tasks every machine is asked about. Raises: UserError for a task that was never measured."""
    name = measured.one(Tag.TASK)
    known = sorted(measured.frame[name].dropna().unique())
    wrong = machines[name].notna() & ~machines[name].isin(known)
    if wrong.any():
        line, found = machines.index[wrong][0], machines.loc[wrong, name].iloc[0]
        raise UserError(f"{name} must be one of {', '.join(known)}", f"machine {line} has {found!r}", "or leave it out")
    return [known if pd.isna(task) else [task] for task in machines[name]]


def _agreed(machines: pd.DataFrame, measured: Table, tag: Tag) -> pd.DataFrame:
    """Fill missing features of the tagged column's group with the one value that its measured rows state.

    A feature on which the measured rows of a part (or task) differ is none of the part's own, and stays missing.
    """
    by = measured.one(tag)
    group = next(column.group for column in measured.columns if column.name == by)
    names = [name for name in measured.select(role=Role.FEATURE, group=group) if name != by]
    rows = measured.frame[measured.frame[by].isin(machines[by].dropna().unique())].groupby(by)[names]
    agreed = rows.first().where(rows.nunique() == 1)
    filled = {name: machines[name].where(machines[name].notna(), machines[by].map(agreed[name])) for name in names}
    return machines.assign(**filled)
