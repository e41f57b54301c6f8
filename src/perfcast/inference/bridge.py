"""Estimates by the champion of another dataset, which are features of machines: the bridge between two datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.features.feature_math import append_logs, feature
from perfcast.inference.cells import (
    GIVEN,
    IMPLIED,
    LOOKED_UP,
    Cells,
    CompletedMachines,
    mask_cells,
    read_column,
    stack_cells,
)
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawnMachines, DrawPredictions, FollowedDraws, impute_draws
from perfcast.inference.parse import ParsedMachines, fill_facts
from perfcast.schema.table import Column, Role, Table, Tag, select
from perfcast.uncertainty.conformal import LEVEL

_FEATURES = {
    "estimate": "estimate by the champion, from every known field of the row",
    "low": "lower end of the 90 % interval of the estimate",
    "high": "upper end of the 90 % interval of the estimate",
    "published": "median of the results of the same task and identity",
    "known": "results of the entity that the estimator was fitted on",
}


@dataclass(frozen=True)
class Base:
    """Champion of another dataset, the name of its columns, and its task by each task of the bridged dataset."""

    champion: Champion
    name: str
    tasks: Mapping[str, str]

    @property
    def columns(self) -> list[Column]:
        """The columns of the estimates."""
        unit = select(self.champion.reference_data.measured.columns, role=Role.TARGET)[0].unit
        units = dict.fromkeys(_FEATURES, unit) | {"known": ""}
        return [feature(f"{self.name}_{name}", self.name, units[name], text, 0) for name, text in _FEATURES.items()]

    def follow(self, machines: ParsedMachines, when: pd.Series | pd.Timestamp | None, *, assume: bool) -> FollowedDraws:
        """Return the draws of machines of the bridged dataset by this champion, which its own draws follow.

        They are those of the same descriptions in the other dataset, so that both assume the same hardware, whichever
        of them is asked.
        """
        champion, known = self.champion, machines.known
        tasks = [None if name is None else self.tasks.get(name, "") for name in known.cells[champion.task].tolist()]
        rows = np.flatnonzero([task != "" for task in tasks])
        is_known = known.has_origin(GIVEN, LOOKED_UP)[rows]
        given = {
            name: mask_cells(values[rows], ~is_known[:, place])
            for place, (name, values) in enumerate(known.cells.items())
        }
        given[champion.task] = np.array([tasks[row] for row in rows.tolist()], dtype=object)
        empty = stack_cells([{}] * len(rows), champion.reference_data.measured.columns)
        cells = empty.assign({name: values for name, values in given.items() if name in empty})
        steps = CompletedMachines(Cells(cells, known.cells.index[rows]))
        fill_facts(steps, champion)
        steps.conclude(champion.rules.fill_implied, IMPLIED)
        days = when.iloc[rows].reset_index(drop=True) if isinstance(when, pd.Series) else when
        return self.lead(impute_draws(ParsedMachines(steps, {}), champion, days, assume=assume))

    def lead(self, drawn: DrawnMachines) -> FollowedDraws:
        """Return draws of the base as those of the bridged dataset follow them."""
        return FollowedDraws(drawn, self.tasks)

    def add_estimates(self, table: Table, shares: np.ndarray | None = None) -> Table:
        """Append the estimates of machines to their table; see `impute_draws` for `shares`."""
        values = self.estimate(table.frame, shares=shares).to_numpy(dtype=float)
        return append_logs(table.with_numbers(self.columns, values.T), [self.columns[0].name])

    def estimate(self, frame: pd.DataFrame, level: float = LEVEL, *, shares: np.ndarray | None = None) -> pd.DataFrame:
        """Return the estimates of machines from all of their known cells, index as `frame`.

        They have what the champion learned after training. A machine of unknown design, or whose task has no other, has
        none. Columns as `columns`.
        """
        champion, measured = self.champion, self.champion.reference_data.measured
        peers = [*measured.select(tag=Tag.TASK), *measured.select(tag=Tag.IDENTITY)]
        time, target = measured.select(tag=Tag.TIME), champion.predictor.targets_[0]
        rows = frame.assign(**{champion.task: frame[champion.task].astype(object).map(self.tasks)})
        is_used = rows[[champion.task, *filter(None, [champion.rules.design_column])]].notna().all(axis=1)
        rows, shares = rows[is_used], None if shares is None else shares[is_used]
        counts = measured.frame[champion.entity].astype(str).value_counts()
        known = pd.DataFrame({"known": frame[champion.entity].astype(str).map(counts).fillna(0)})
        if rows.empty:
            return known.reindex(columns=list(_FEATURES)).add_prefix(f"{self.name}_")
        machines = rows.reset_index(drop=True)
        cells = stack_cells([{}] * len(machines), measured.columns)
        steps = CompletedMachines(cells.assign({name: read_column(machines[name]) for name in cells if name in rows}))
        fill_facts(steps, champion)
        steps.conclude(champion.rules.fill_implied, IMPLIED)
        when = machines[time[0]] if time else None
        drawn = DrawPredictions(impute_draws(ParsedMachines(steps, {}), champion, when, shares=shares), champion)
        (shift, narrowing), intervals = drawn.levels[0], drawn.intervals(0, when, level)
        medians = drawn.medians[:, 0] * np.exp(shift)
        below, above = (np.nan, np.nan) if intervals is None else (narrowing * intervals[n] for n in ("below", "above"))
        published = measured.frame.groupby(peers, observed=True)[target].median().rename("published")
        values = machines[peers].astype(object).join(published, on=peers)[["published"]]
        values = values.assign(estimate=medians, low=medians * np.exp(-below), high=medians * np.exp(above))
        return known.join(values.set_index(rows.index))[list(_FEATURES)].add_prefix(f"{self.name}_")
