"""Forecast machines that nobody has measured with a data set's champion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.forecasting.answer import Answer, Estimate, MachineAnswer
from perfcast.forecasting.champion import Champion
from perfcast.forecasting.completing import ASSUMED, Completed, complete
from perfcast.forecasting.describing import Described
from perfcast.forecasting.explaining import drivers, drivers_of, name_of, neighbours, shown, values_of
from perfcast.forecasting.featuring import featured
from perfcast.forecasting.own_measurements import OwnMeasurements
from perfcast.intervals import LEVEL, questions_of
from perfcast.schema import Role, Table, Tag, select


@dataclass(frozen=True)
class Asked:
    """What else is asked beside the machines.

    `when` they will be measured (None: as soon as the last training row); whether what nobody said is `assumed`; how
    many measured `neighbours` are shown; whether to `explain` by the values a forecast rests on and its drivers.
    """

    level: float = LEVEL
    when: pd.Timestamp | None = None
    assume: bool = True
    neighbours: int = 3
    explain: bool = True


def forecast(
    described: Described, champion: Champion, asked: Asked = Asked(), own: OwnMeasurements | None = None
) -> Answer:
    """Forecast every machine for its task, or for all tasks where it names none, after completing its description.

    A task gets the targets that it was measured in, see `Predictor`; with measurements of one's `own`, every forecast
    is corrected by what they say of its error.
    Raises: UserError when a machine cannot be, or a task is not one of the data set's.
    """
    completed = complete(described.frame, champion.knowledge, champion.donors if asked.assume else None)
    measured = champion.knowledge.measured
    table = featured(champion.dataset, completed.frame, measured.columns, champion.features)
    estimates: dict[int, list[Estimate]] = {}
    first: dict[int, int] = {}
    for row, estimate in _estimates(completed, table, champion, asked, own):
        line = int(completed.frame.index[row])
        first.setdefault(line, row)
        estimates.setdefault(line, []).append(estimate)
    machines = tuple(
        MachineAnswer(
            line,
            name_of(completed.frame.iloc[first[line]], measured),
            tuple(found),
            values_of(completed, first[line], measured) if asked.explain else (),
            (*described.notes.get(line, ()), *(own.notes if own else ())),
        )
        for line, found in estimates.items()
    )
    inputs = select(champion.predictor.columns_, role=Role.FEATURE)
    return Answer(champion.dataset, champion.name, champion.schedule, machines, len(inputs))


def _estimates(
    completed: Completed, table: Table, champion: Champion, asked: Asked, own: OwnMeasurements | None
) -> list[tuple[int, Estimate]]:
    """Return the row and the estimate of every question, in the order of rows."""
    X = table.frame
    targets = champion.predictor.targets_
    medians, wanted = champion.predictor.predict(X).to_numpy(), champion.predictor.asked(X)
    units = {column.name: column.unit for column in table.columns}
    inputs = [column.name for column in select(champion.predictor.columns_, role=Role.FEATURE)]
    missing = X[inputs].isna().sum(axis=1).to_numpy()
    assumed = (completed.origins == ASSUMED).sum(axis=1).to_numpy()
    tasks = X[table.column_of(Tag.TASK)].astype(str).to_numpy()
    near = neighbours(table, champion, asked.neighbours)
    typical, added, groups = drivers(completed, champion) if asked.explain else ([], np.zeros((0, 0, 0)), [])
    found = []
    for number, target in enumerate(targets):
        sure = _sure(champion, table, target, asked)
        shift, narrowing = np.zeros(len(X)), np.ones(len(X))
        if own is not None and sure is not None:
            shift, narrowing = own.correct(table, target, sure["typical"].to_numpy())
        for row in np.flatnonzero(wanted[:, number]):
            explained: dict[str, Any] = {}
            if asked.explain:
                explained["typical"] = shown(champion, typical[row], 0.0, target)
                explained["drivers"] = drivers_of(added[row, :, number], groups)
            median = float(medians[row, number] * np.exp(shift[row]))
            half = None if sure is None else float(sure["half"].iloc[row] * narrowing[row])
            found.append(
                (
                    int(row),
                    Estimate(
                        task=tasks[row],
                        target=target,
                        median=median,
                        low=None if half is None else median * float(np.exp(-half)),
                        high=None if half is None else median * float(np.exp(half)),
                        level=asked.level,
                        unit=units[target],
                        support=None if sure is None else float(sure["support"].iloc[row]),
                        unlike=None if sure is None else str(sure["unlike"].iloc[row]) or None,
                        missing=int(missing[row]),
                        assumed=int(assumed[row]),
                        own=float(np.exp(shift[row])) if own else None,
                        neighbours=tuple(shown(champion, one, far, target) for one, far in near[row]),
                        **explained,
                    ),
                )
            )
    return sorted(found, key=lambda pair: pair[0])


def _sure(champion: Champion, table: Table, target: str, asked: Asked) -> pd.DataFrame | None:
    """Return how sure a target's forecasts are, None without a calibration; see `Calibrated.intervals`."""
    if champion.calibrated is None:
        return None
    X = table.frame
    when = None if asked.when is None else pd.Series(asked.when, index=X.index)
    return champion.calibrated.intervals(X, questions_of(X[table.column_of(Tag.TASK)], target), when, asked.level)
