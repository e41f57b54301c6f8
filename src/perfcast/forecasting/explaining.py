"""Why a forecast is what it is: the nearest measured machines, and what each group makes of a typical one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.forecasting.answer import Driver, Neighbour, Value
from perfcast.forecasting.champion import Champion
from perfcast.forecasting.completing import GIVEN, MISSING, Completed
from perfcast.forecasting.drivers import shapley
from perfcast.forecasting.featuring import featured
from perfcast.schema import Kind, Role, Table, Tag

_UNSHOWN = (Role.TARGET, Role.PROVENANCE)
_LEAST = 5e-4
"""Change of the logarithm that is not worth showing."""


def neighbours(table: Table, champion: Champion, count: int) -> list[list[tuple[int, float]]]:
    """Return the nearest measured rows of every row and their distances; none without a calibration."""
    if champion.neighbourhood is None or not count:
        return [[] for _ in range(len(table.frame))]
    return champion.neighbourhood.nearest(table.frame, table.frame[table.column_of(Tag.TASK)], count)


def shown(champion: Champion, row: int, distance: float, target: str) -> Neighbour:
    """Return a measured row as a person knows it."""
    measured = champion.knowledge.measured
    cells = measured.frame.iloc[row]
    times = measured.select(tag=Tag.TIME)
    return Neighbour(
        str(cells[measured.column_of(Tag.ROW)]),
        name_of(cells, measured),
        float(cells[target]),
        f"{cells[times[0]]:%Y-%m}" if times else "",
        distance,
    )


def name_of(cells: pd.Series, table: Table) -> str:
    """Name a machine by what is known of it: its product, its processors."""
    entity = cells[table.column_of(Tag.ENTITY)]
    name = "a new part" if pd.isna(entity) else str(entity)
    chips = cells.get("chips")
    if chips is not None and not pd.isna(chips):
        name = f"{chips:g} x {name}"
    stem = cells.get("system_stem")
    return name if stem is None or pd.isna(stem) else f"{stem}, {name}"


def values_of(completed: Completed, row: int, table: Table) -> tuple[Value, ...]:
    """Return what is known of a machine, column by column, and where it comes from."""
    found = []
    for column in table.columns:
        if Tag.TASK in column.tags:
            continue
        origin = str(completed.origins[column.name].iloc[row])
        if origin == MISSING or (column.role in _UNSHOWN and origin != GIVEN):
            continue
        cell = completed.frame[column.name].iloc[row]
        if column.kind is Kind.DATE:
            value: float | str = f"{cell:%Y-%m}"
        else:
            value = float(cell) if column.kind is Kind.NUMERICAL else str(cell)
        found.append(Value(column.name, column.group, value, column.unit, origin))
    return tuple(found)


def drivers(completed: Completed, champion: Champion) -> tuple[list[int], np.ndarray, list[str]]:
    """Return the typical measured row of every row's task, and what every group adds to its forecast.

    Typical is the result with the median score of the task's last year. Shapes: (n,), (n, groups, targets), (groups,).
    """
    measured = champion.knowledge.measured
    task = measured.column_of(Tag.TASK)
    typical = champion.typical
    rows = [typical[name] for name in completed.frame[task].astype(str)]
    names = [column.name for column in measured.columns]
    groups: dict[str, list[str]] = {}
    for column in measured.columns:
        if column.role in (Role.FEATURE, Role.KEY) or column.kind is Kind.DATE:
            groups.setdefault(column.group, []).append(column.name)

    def logs(frame: pd.DataFrame) -> np.ndarray:
        table = featured(champion.dataset, frame, measured.columns, champion.features)
        forecasts: np.ndarray = np.log(champion.predictor.predict(table.frame).to_numpy(dtype=float))
        return forecasts

    added = shapley(completed.frame[names], measured.frame.iloc[rows], groups, logs)
    return rows, added, list(groups)


def drivers_of(added: np.ndarray, groups: list[str]) -> tuple[Driver, ...]:
    """Return the groups that matter, the largest first. Shapes: (groups,) logarithms."""
    order = np.argsort(-np.abs(added), kind="stable")
    return tuple(Driver(groups[one], float(np.exp(added[one]))) for one in order if abs(added[one]) >= _LEAST)
