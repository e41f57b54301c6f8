"""Estimates by the champion of another dataset, which are features of machines: the bridge between two datasets."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.features.feature_math import append_logs, feature
from perfcast.inference.cells import (
    ASSUMED,
    GIVEN,
    IMPLIED,
    MEASURED,
    Cells,
    CompletedMachines,
    fill_missing,
    mask_cells,
    read_column,
    stack_cells,
)
from perfcast.inference.champion import Base
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.inference.parse import ParsedMachines, fill_facts
from perfcast.inference.typical import find_typical
from perfcast.schema.table import Column, Role, Table, Tag, select
from perfcast.uncertainty.conformal import LEVEL

_FEATURES = {
    "estimate": "estimate by the champion, from every known field of the row",
    "low": "lower end of the 90 % interval of the estimate",
    "high": "upper end of the 90 % interval of the estimate",
    "published": "median of the results of the same task and identity",
    "known": "results of the entity that the estimator was fitted on",
}


class Bridge(Base):
    """Base that estimates machines of the bridged dataset from all that is known of them."""

    @cached_property
    def _results_of(self) -> pd.Series:
        """The number of results of every entity."""
        frame = self.champion.reference_data.measured.frame
        return frame[self.champion.entity].astype(str).value_counts()

    @cached_property
    def _published(self) -> pd.Series:
        """The median published result of every task and identity."""
        measured = self.champion.reference_data.measured
        peers = [*measured.select(tag=Tag.TASK), *measured.select(tag=Tag.IDENTITY)]
        target = self.champion.predictor.targets_[0]
        return measured.frame.groupby(peers, observed=True)[target].median().rename("published")

    @property
    def columns(self) -> list[Column]:
        """The columns of the estimates."""
        unit = select(self.champion.reference_data.measured.columns, role=Role.TARGET)[0].unit
        units = dict.fromkeys(_FEATURES, unit) | {"known": ""}
        return [feature(f"{self.name}_{name}", self.name, units[name], text, 0) for name, text in _FEATURES.items()]

    def fill_typical(self, machines: CompletedMachines, excluded: Collection[str]) -> Cells:
        """Return machines with the missing cells that their typical machines have in the base."""
        champion, deck = self.champion, self.champion.joint_deck
        tasks = [self.tasks.get(name, "") for name in machines.cells[champion.task].tolist()]
        rows = np.flatnonzero([task in champion.tasks for task in tasks])
        if deck is None or not len(rows):
            return machines.cells
        is_known = machines.has_origin(GIVEN, ASSUMED)[rows]
        known = {
            name: mask_cells(values[rows], ~is_known[:, place])
            for place, (name, values) in enumerate(machines.cells.items())
        }
        known[champion.task] = np.array([tasks[row] for row in rows.tolist()], dtype=object)
        days = known.pop(deck.rules.day, None)
        empty = stack_cells([{}] * len(rows), champion.reference_data.measured.columns)
        steps = CompletedMachines(empty.assign({name: values for name, values in known.items() if name in empty}))
        fill_facts(steps, champion)
        steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
        steps.fill(deck.date(steps.cells, None if days is None else pd.Series(days)), ASSUMED)
        typical_machines = find_typical(steps, champion, deck)
        is_taken = typical_machines.has_origin(ASSUMED, MEASURED)
        filled = {}
        for name, values in typical_machines.cells.items():
            if name in machines.cells and name not in excluded:
                column = mask_cells(machines.cells[name], np.full(len(tasks), True))
                column[rows] = mask_cells(values, ~is_taken[:, typical_machines.places[name]])
                filled[name] = column
        return fill_missing(machines.cells, filled)

    def add_estimates(self, table: Table) -> Table:
        """Append the estimates of machines to their table."""
        values = self.estimate(table.frame).to_numpy(dtype=float)
        return append_logs(table.with_numbers(self.columns, values.T), [self.columns[0].name])

    def estimate(self, frame: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
        """Return the estimates of machines from all of their known cells, index as `frame`.

        They have what the champion learned after training. A machine of unknown design, or whose task has no other, has
        none. Columns as `columns`.
        """
        champion, measured = self.champion, self.champion.reference_data.measured
        time = measured.select(tag=Tag.TIME)
        rows = frame.assign(**{champion.task: frame[champion.task].astype(object).map(self.tasks)})
        is_used = rows[[champion.task, *filter(None, [champion.rules.names.design_column])]].notna().all(axis=1)
        rows = rows[is_used]
        known = pd.DataFrame({"known": frame[champion.entity].astype(str).map(self._results_of).fillna(0)})
        if rows.empty:
            return known.reindex(columns=list(_FEATURES)).add_prefix(f"{self.name}_")
        machines = rows.reset_index(drop=True)
        cells = stack_cells([{}] * len(machines), measured.columns)
        steps = CompletedMachines(cells.assign({name: read_column(machines[name]) for name in cells if name in rows}))
        fill_facts(steps, champion)
        steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
        when = machines[time[0]] if time else None
        imputed = impute_machines(ParsedMachines(steps, {}), champion, when, of_one_kind=True)
        predictions = MachinePredictions(imputed, champion)
        (shift, narrowing), intervals = predictions.levels[0], predictions.intervals(0, level)
        medians = predictions.medians[:, 0] * np.exp(shift)
        below, above = (np.nan, np.nan) if intervals is None else (narrowing * intervals[n] for n in ("below", "above"))
        peers = [str(name) for name in self._published.index.names]
        values = machines[peers].astype(object).join(self._published, on=peers)[["published"]]
        values = values.assign(estimate=medians, low=medians * np.exp(-below), high=medians * np.exp(above))
        return known.join(values.set_index(rows.index))[list(_FEATURES)].add_prefix(f"{self.name}_")
