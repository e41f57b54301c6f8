"""Measured machines like one's own: how far they are, and in what they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.errors import UserError
from perfcast.forecasting import Champion, Described, Neighbour
from perfcast.forecasting.completing import ASSUMED, Completed, complete
from perfcast.forecasting.explaining import name_of, neighbours, shown
from perfcast.forecasting.featuring import featured
from perfcast.schema import Column, Kind, Role, Tag, select


@dataclass(frozen=True)
class Difference:
    """A column in which a measured machine differs; `assumed`: what is known of the own machine was not said."""

    column: str
    group: str
    unit: str
    own: float | str | None
    theirs: float | str | None
    assumed: bool


@dataclass(frozen=True)
class Similar:
    """A measured result, the nearest first, with its score in `target`, and the columns that set it most apart.

    `differing` is the number of all columns that differ. Units: `measured.distance` natural logarithms.
    """

    task: str
    target: str
    unit: str
    measured: Neighbour
    differences: tuple[Difference, ...]
    differing: int


@dataclass(frozen=True)
class Resemblance:
    """The measured machines like one, by task."""

    line: int
    machine: str
    similar: tuple[Similar, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON."""
        return asdict(self)


def resemble(
    described: Described,
    champion: Champion,
    *,
    count: int = 10,
    most: int = 4,
    tasks: Sequence[str] = (),
    assume: bool = True,
) -> tuple[Resemblance, ...]:
    """Find the measured results that are nearest to every machine, for the tasks, else for its own, else for all.

    Near is what forecasts rest on, see `Neighbourhood`. At most `most` differences are told of each, those of the
    groups that count most first. Raises: UserError when the champion cannot say what is near.
    """
    if champion.neighbourhood is None:
        raise UserError("similar machines need a champion that says what is near", "this one has no calibration")
    measured = champion.knowledge.measured
    name = measured.column_of(Tag.TASK)
    machines = described.frame
    if tasks:
        places = np.repeat(np.arange(len(machines)), len(tasks))
        machines = machines.iloc[places].assign(**{name: list(tasks) * len(machines)})
    completed = complete(machines, champion.knowledge, champion.donors if assume else None)
    table = featured(champion.dataset, completed.frame, measured.columns, champion.features)
    found: dict[int, Resemblance] = {}
    units = {column.name: column.unit for column in measured.columns}
    for row, near in enumerate(neighbours(table, champion, count)):
        line = int(completed.frame.index[row])
        known = found.setdefault(
            line, Resemblance(line, name_of(completed.frame.iloc[row], measured), (), described.notes.get(line, ()))
        )
        own = []
        for other, distance in near:
            cells = measured.frame.iloc[other]
            target = next(one for one in champion.predictor.targets_ if not pd.isna(cells[one]))
            differences = _differences(completed, row, cells, champion)
            one = shown(champion, other, distance, target)
            own.append(Similar(str(cells[name]), target, units[target], one, differences[:most], len(differences)))
        found[line] = replace(known, similar=(*known.similar, *own))
    return tuple(found.values())


def _differences(completed: Completed, row: int, theirs: pd.Series, champion: Champion) -> tuple[Difference, ...]:
    """Return the features that are not the same, the one that counts most first; see `_weight`."""
    own, origins = completed.frame.iloc[row], completed.origins.iloc[row]
    found = []
    for column in select(champion.knowledge.measured.columns, role=Role.FEATURE):
        mine, other = _plain(own[column.name], column), _plain(theirs[column.name], column)
        if mine != other:
            assumed = origins[column.name] == ASSUMED
            one = Difference(column.name, column.group, column.unit, mine, other, assumed)
            found.append((_weight(one, champion), one))
    return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))


def _weight(one: Difference, champion: Champion) -> float:
    """Return what a difference counts: its column's share of its group's weight, less for nearly equal numbers."""
    weights = champion.calibrated.calibration.weights if champion.calibrated else {}
    own = champion.knowledge.measured.select(role=Role.FEATURE, group=one.group)
    weight = weights.get(one.group, 0.0) / len(own)
    if isinstance(one.own, float) and isinstance(one.theirs, float) and one.own > 0 and one.theirs > 0:
        return weight * min(1.0, abs(float(np.log2(one.own / one.theirs))))
    return weight * (0.5 if one.own is None or one.theirs is None else 1.0)


def _plain(cell: Any, column: Column) -> float | str | None:
    if pd.isna(cell):
        return None
    return float(cell) if column.kind is Kind.NUMERICAL else str(cell)
