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
    is_missing,
    list_rows,
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
    def _results_of(self) -> dict[str, int]:
        """The number of results of every entity."""
        frame = self.champion.reference_data.measured.frame
        counts = frame[self.champion.entity].astype(str).value_counts()
        return {str(entity): int(count) for entity, count in counts.items()}

    @cached_property
    def _peers(self) -> list[str]:
        """The columns of the task and the identity."""
        measured = self.champion.reference_data.measured
        return [*measured.select(tag=Tag.TASK), *measured.select(tag=Tag.IDENTITY)]

    @cached_property
    def _published(self) -> dict[tuple[object, ...], float]:
        """The median published result of every task and identity."""
        frame, target = self.champion.reference_data.measured.frame, self.champion.predictor.targets_[0]
        medians = frame.groupby(self._peers, observed=True)[target].median()
        return {key if isinstance(key, tuple) else (key,): float(value) for key, value in medians.items()}

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
        results = [self._results_of.get(name, 0) for name in frame[champion.entity].tolist()]
        estimates = {name: np.full(len(frame), np.nan) for name in _FEATURES} | {
            "known": np.array(results, dtype=float)
        }
        tasks = np.array([self.tasks.get(name) for name in frame[champion.task].tolist()], dtype=object)
        is_used = ~is_missing(tasks)
        for name in filter(None, [champion.rules.names.design_column]):
            is_used &= frame[name].notna().to_numpy()
        rows = np.flatnonzero(is_used)
        if len(rows):
            cells = stack_cells([{}] * len(rows), measured.columns)
            known = {name: read_column(frame[name])[rows] for name in cells if name in frame}
            known[champion.task] = tasks[rows]
            steps = CompletedMachines(cells.assign(known))
            fill_facts(steps, champion)
            steps.conclude(champion.rules.typical_values.fill_implied, IMPLIED)
            time = measured.select(tag=Tag.TIME)
            when = pd.Series(read_column(frame[time[0]])[rows]) if time else None
            imputed = impute_machines(ParsedMachines(steps, {}), champion, when, of_one_kind=True)
            predictions = MachinePredictions(imputed, champion)
            (shift, narrowing), intervals = predictions.levels[0], predictions.intervals(0, level)
            medians = predictions.medians[:, 0] * np.exp(shift)
            estimates["estimate"][rows] = medians
            if intervals is not None:
                estimates["low"][rows] = medians * np.exp(-narrowing * intervals["below"].to_numpy())
                estimates["high"][rows] = medians * np.exp(narrowing * intervals["above"].to_numpy())
            peers = list_rows(known, self._peers)
            estimates["published"][rows] = [self._published.get(peer, np.nan) for peer in peers]
        return pd.DataFrame(estimates, index=frame.index).add_prefix(f"{self.name}_")
