"""Composition of a time from its parts: operators measured alone, and overheads fitted on whole runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from perfcast.domains.llm.predictors.roofline_factors import RooflineFactorsPredictor
from perfcast.features.encoding.columns import feature_columns, labels, number_matrix
from perfcast.predictors.factory import load_nested, save_nested
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.predictors.trees import ExtraTrees
from perfcast.schema.table import Column, Kind, Role, Tag, select
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

_SUFFIX = "_slowdown"
_MIN_ROWS = 10
"""Fewest rows that a slowdown is learned from."""


@dataclass(kw_only=True, eq=False, repr=False)
class CompositionPredictor(Predictor):
    """time = c_0 + sum of c_j part_j + sum of c_k overhead_k, times a factor per category, for every target and task.

    A part (a column tagged COMPONENT) is the time of some operators at the speed of light. Its slowdown (the column
    tagged SLOWDOWN of the same name) comes from these operators measured alone on the row's ENTITY. A slowdown is read
    where training has rows of the ENTITY; for others, trees predict it from the features of the row. Overheads are the
    COST columns in another unit than the parts, such as layers that are started. The sum is fitted as
    `RooflineFactorsPredictor` fits it. Rows without parts get the roofline model with factors.

    Source: composition of measured operators as in Agrawal et al., Vidur, 2024, MLSys, and Lee et al., NeuSight, 2025,
    ASPLOS; a fitted factor per part, because operators measured alone find their operands in caches.
    """

    reads_tags_only: ClassVar[bool] = True

    shrinkage: float = 0.015
    loss_scale: float = 0.2
    n_estimators: int = 30
    min_samples_leaf: int = 2
    random_state: int = 0

    entities_: set[str] = field(init=False)
    """Entities with a slowdown in training."""
    sum_: Predictor | None = field(init=False)
    slowdowns_: Predictor | None = field(init=False)
    """Trees of every COMPONENT's slowdown."""
    fallback_: Predictor = field(init=False)

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        y = pd.DataFrame(np.exp(log_y), columns=list(self.targets_))
        when = None if self._when is None else pd.Series(self._when)
        self.fallback_ = self._new_sum().fit(X, y, columns=self.columns_, when=when)
        self.entities_ = set()
        self.slowdowns_ = None
        self.sum_ = None
        parts = self._part_columns()
        slowdowns = self._slowdown_columns()
        if not parts:
            return
        values = number_matrix(X, slowdowns)
        known = np.isfinite(values)
        self.entities_ = set(self._entities(X)[known.any(axis=1)])
        self._fit_slowdowns(X, values)
        composed = self._compose(X)
        rows = np.isfinite(composed).all(axis=1)
        if (rows[:, None] & np.isfinite(log_y)).any(axis=0).all():
            inputs = self._with_parts(X[rows], composed[rows])
            self.sum_ = self._new_sum().fit(
                inputs,
                y[rows],
                columns=self._sum_columns(),
                when=None if when is None else when[rows],
            )

    def _fit_slowdowns(self, X: pd.DataFrame, values: np.ndarray) -> None:
        """Fit the trees of the slowdowns; rows of several tasks have the same."""
        names = [column.name for column in self._part_columns()]
        known = np.where(values > 0, values, np.nan)
        repeated = X.duplicated([column.name for column in self._tree_columns()]).to_numpy()
        rows = np.asarray(np.isfinite(known).any(axis=1)) & ~repeated
        frame = pd.DataFrame(known[rows], columns=names).dropna(axis=1, thresh=_MIN_ROWS)
        if len(frame.columns):
            trees = ExtraTrees(
                n_estimators=self.n_estimators,
                min_samples_leaf=self.min_samples_leaf,
                random_state=self.random_state,
            )
            self.slowdowns_ = trees.fit(X[rows], frame, columns=self._tree_columns())

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        logs = predict_logs(self.fallback_, X)
        if self.sum_ is None:
            return logs
        composed = self._compose(X)
        rows = np.isfinite(composed).all(axis=1)
        if rows.any():
            inputs = self._with_parts(X[rows], composed[rows])
            logs[rows] = predict_logs(self.sum_, inputs)
        return logs

    def _compose(self, X: pd.DataFrame) -> np.ndarray:
        """Return the times of the parts, (n, parts); missing where a part or its slowdown is unknown."""
        parts = self._part_columns()
        light = number_matrix(X, parts)
        slowdown = number_matrix(X, self._slowdown_columns())
        slowdown[~np.isin(self._entities(X), list(self.entities_))] = np.nan
        unknown = (light > 0) & ~np.isfinite(slowdown)
        rows = unknown.any(axis=1)
        if rows.any() and self.slowdowns_ is not None:
            names = [column.name for column in parts]
            predicted = self.slowdowns_.predict(X[rows]).reindex(columns=names).to_numpy(dtype=float)
            slowdown[rows] = np.where(unknown[rows], predicted, slowdown[rows])
        return np.asarray(np.where(light == 0, 0.0, light * slowdown))

    def _new_sum(self) -> Predictor:
        return RooflineFactorsPredictor(shrinkage=self.shrinkage, loss_scale=self.loss_scale)

    def _with_parts(self, X: pd.DataFrame, composed: np.ndarray) -> pd.DataFrame:
        names = [column.name for column in self._part_columns()]
        return X.assign(**{name: composed[:, place] for place, name in enumerate(names)})

    def _part_columns(self) -> list[Column]:
        """Return the COMPONENT columns that have a SLOWDOWN column."""
        slow = {column.name for column in select(self.columns_, kind=Kind.NUMERICAL, tag=Tag.SLOWDOWN)}
        tagged = select(self.columns_, role=Role.FEATURE, kind=Kind.NUMERICAL, tag=Tag.COMPONENT)
        return [column for column in tagged if column.name + _SUFFIX in slow]

    def _slowdown_columns(self) -> list[Column]:
        by_name = {column.name: column for column in self.columns_}
        return [by_name[column.name + _SUFFIX] for column in self._part_columns()]

    def _tree_columns(self) -> list[Column]:
        """Return the columns that a slowdown is learned from: features alone, so one value serves all tasks."""
        return list(feature_columns(self.columns_))

    def _sum_columns(self) -> list[Column]:
        """Return the declared columns with the parts as the only amounts of their unit."""
        parts = {column.name for column in self._part_columns()}
        units = {column.unit for column in self._part_columns()}

        def declare(column: Column) -> Column:
            if column.name in parts:
                return replace(column, tags=(*column.tags, Tag.COST))
            if Tag.COST in column.tags and column.unit in units:
                return replace(column, tags=tuple(tag for tag in column.tags if tag is not Tag.COST))
            return column

        return [declare(column) for column in self.columns_]

    def _entities(self, X: pd.DataFrame) -> np.ndarray:
        """Return the ENTITY of every row, "" where it is missing, (n,) object."""
        tagged = select(self.columns_, tag=Tag.ENTITY)
        names = np.full(len(X), "", dtype=object)
        for column in tagged[:1]:
            values = labels(X, column)
            names = np.where(pd.isna(values), "", values).astype(object)
        return names

    def _save(self, folder: Path) -> None:
        models = {
            "fallback": self.fallback_,
            "slowdowns": self.slowdowns_,
            "sum": self.sum_,
        }
        fitted = {name: model for name, model in models.items() if model is not None}
        write_json(
            folder / "composition.json",
            {"entities": sorted(self.entities_), "models": list(fitted)},
        )
        save_nested(folder, fitted)

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "composition.json")
        models = load_nested(folder, state["models"])
        self.entities_ = set(state["entities"])
        self.fallback_ = models["fallback"]
        self.sum_ = models.get("sum")
        self.slowdowns_ = models.get("slowdowns")
