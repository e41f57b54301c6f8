"""Facts about single rows for the report: names, kinds, dates, scores of siblings, and counts of training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import YEAR, build_slices
from perfcast.experiment.fitting import evaluated_rows
from perfcast.schema.table import Role, Table, Tag

NAME, ENTITY, BLOCK, WHEN = "name", "entity", "block", "when"
"""Columns of `Rows.names`: machine in words, entity that unseen splits hold out, submission, publication date."""
_MIN_SIBLINGS = 5
_MIN_SPREAD = 0.01
"""Smallest spread of siblings (logarithm), so that tiny deviations among equal siblings are no outliers."""


@dataclass(frozen=True)
class Rows:
    """Table and splits of one dataset for the report.

    Shapes: `folds` maps a split to one column per fold (train, validation, test, unused), rows as in the table.
    """

    table: Table
    folds: Mapping[str, pd.DataFrame]

    @cached_property
    def keys(self) -> pd.Index:
        """The ROW column."""
        keys: pd.Index = pd.Index(self.table.frame[self.table.column_of(Tag.ROW)], name="row")
        return keys

    @cached_property
    def names(self) -> pd.DataFrame:
        """The columns NAME, ENTITY, BLOCK and WHEN by row; a column that the dataset lacks is empty."""
        frame, entity = self.table.frame, self._column_of_tag(Tag.ENTITY)
        first = frame[entity].astype(str) if entity else pd.Series("", index=frame.index)
        words = first
        for name in self.table.select(tag=Tag.IDENTITY):
            # values that follow from the entity are not repeated
            if entity is None or frame.groupby(entity)[name].nunique(dropna=False).max() > 1:
                words = words + ", " + name.replace("_", " ") + " " + frame[name].map(_plain)
        block = self._column_of_tag(Tag.BLOCK)
        times = self._column_of_tag(Tag.TIME)
        columns = {
            NAME: words.str.strip(", "),
            ENTITY: first,
            BLOCK: frame[block].astype(str) if block else "",
            WHEN: frame[times] if times else pd.NaT,
        }
        return pd.DataFrame(columns, index=frame.index).set_axis(self.keys, axis=0)

    @cached_property
    def slices(self) -> pd.DataFrame:
        """Slice columns as text, by row; without the task and the year."""
        return build_slices(self.table).drop(columns=[*self.table.select(tag=Tag.TASK), YEAR], errors="ignore")

    @property
    def entity_words(self) -> str:
        """Name of the entities of the dataset, for sentences."""
        return (self._column_of_tag(Tag.ENTITY) or "machine").removesuffix("_key").removesuffix("_id").replace("_", " ")

    @property
    def identity_words(self) -> str:
        """Names of the columns that siblings share, for sentences."""
        return " and ".join(
            name.removesuffix("_key").removesuffix("_id").replace("_", " ")
            for name in self.table.select(tag=Tag.IDENTITY)
        )

    def siblings(self) -> pd.DataFrame:
        """Compare the measured score of every row and target with those of its siblings.

        Siblings share TASK and IDENTITY. Shapes: one line per row and target that has at least five siblings, columns
        row, target, deviation (logarithm of the score over their median), z (robust: deviation over 1.4826 times the
        median absolute deviation) and siblings (how many).
        """
        frame = self.table.frame[evaluated_rows(self.table)]
        by = self.table.select(tag=Tag.TASK) + self.table.select(tag=Tag.IDENTITY)
        if not self.table.select(tag=Tag.IDENTITY):
            return pd.DataFrame(columns=["row", "target", "deviation", "z", "siblings"])
        keys = pd.Series(frame.groupby(by, dropna=False).ngroup(), index=frame.index)
        by_target = []
        for target in self.table.select(role=Role.TARGET):
            logs = np.log(frame[target].where(frame[target] > 0))
            deviation = logs - logs.groupby(keys).transform("median")
            spread = deviation.abs().groupby(keys).transform("median")
            others = logs.groupby(keys).transform("count") - 1
            frame_of_target = pd.DataFrame(
                {
                    "row": self.keys[frame.index],
                    "target": target,
                    "deviation": deviation,
                    "z": deviation / (1.4826 * spread).clip(lower=_MIN_SPREAD),
                    "siblings": others,
                }
            )
            by_target.append(frame_of_target[deviation.notna() & (others >= _MIN_SIBLINGS)])
        stacked: pd.DataFrame = pd.concat(by_target, ignore_index=True)
        stacked["siblings"] = stacked["siblings"].astype(int)
        return stacked

    def count_training_rows(self, split: str, values: pd.Series) -> pd.Series:
        """Return the number of training rows of its fold with the same value as each test row, by row.

        `values` is by row; a missing value has no training rows.
        """
        parts = []
        for test, training in self._parts(split):
            counts = values[training].value_counts()
            parts.append(values[test].map(counts).fillna(0).astype(int))
        return pd.concat(parts) if parts else pd.Series(dtype=int)

    def is_forward(self, split: str) -> bool:
        """Return whether every test row of a split was published after all its training rows."""
        when = self.names[WHEN]
        parts = list(self._parts(split))
        if when.isna().all() or not parts:
            return False
        return all(when[test].min() > when[training].max() for test, training in parts)

    def _parts(self, split: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        folds = self.folds.get(split, pd.DataFrame())
        for name in folds.columns:
            part = folds[name].to_numpy()
            yield part == "test", np.isin(part, ["train", "validation"])

    def _column_of_tag(self, tag: Tag) -> str | None:
        return next(iter(self.table.select(tag=tag)), None)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "?" if np.isnan(value) else f"{value:g}"
    return str(value)
