"""What the report can say of single rows: names, kinds and dates, how their siblings scored, what training held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.evaluation.predictions import YEAR, slices_of
from perfcast.parts import judged
from perfcast.schema import Role, Table, Tag

NAME, ENTITY, BLOCK, WHEN = "name", "entity", "block", "when"
"""Columns of `Rows.names`: the machine in words, what an unseen split holds out, the submission, the publication."""
_LEAST_SIBLINGS = 5
_LEAST_SPREAD = 0.01
"""Smallest spread of siblings in logarithms: below it a hair's breadth would look like an outlier."""


@dataclass(frozen=True)
class Rows:
    """One data set's table and its splits, as the report reads them.

    Shapes: `folds` maps a split to one column per fold (train, valid, test, unused), rows as in the table.
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
        """The columns NAME, ENTITY, BLOCK and WHEN by row; a column that the data set lacks is empty."""
        frame, entity = self.table.frame, self._one(Tag.ENTITY)
        first = frame[entity].astype(str) if entity else pd.Series("", index=frame.index)
        words = first
        for name in self.table.select(tag=Tag.IDENTITY):
            # what follows from the entity need not be said again
            if entity is None or frame.groupby(entity)[name].nunique(dropna=False).max() > 1:
                words = words + ", " + name.replace("_", " ") + " " + frame[name].map(_plain)
        block = self._one(Tag.BLOCK)
        times = self._one(Tag.TIME)
        found = {
            NAME: words.str.strip(", "),
            ENTITY: first,
            BLOCK: frame[block].astype(str) if block else "",
            WHEN: frame[times] if times else pd.NaT,
        }
        return pd.DataFrame(found, index=frame.index).set_axis(self.keys, axis=0)

    @cached_property
    def slices(self) -> pd.DataFrame:
        """What errors are reported by, as text, by row; without the task and the year."""
        return slices_of(self.table).drop(columns=[*self.table.select(tag=Tag.TASK), YEAR], errors="ignore")

    @property
    def entity_words(self) -> str:
        """What the data set calls its entities, for sentences."""
        return (self._one(Tag.ENTITY) or "machine").removesuffix("_key").removesuffix("_id").replace("_", " ")

    @property
    def identity_words(self) -> str:
        """What siblings share, for sentences."""
        return " and ".join(
            name.removesuffix("_key").removesuffix("_id").replace("_", " ")
            for name in self.table.select(tag=Tag.IDENTITY)
        )

    def siblings(self) -> pd.DataFrame:
        """Return how the measured score of every row and target compares with its siblings'.

        Siblings share TASK and IDENTITY. Shapes: one line per row and target that has at least five siblings, columns
        row, target, deviation (logarithm of the score over their median), z (robust: deviation over 1.4826 times the
        median absolute deviation) and siblings (how many).
        """
        frame = self.table.frame[judged(self.table)]
        by = self.table.select(tag=Tag.TASK) + self.table.select(tag=Tag.IDENTITY)
        if not self.table.select(tag=Tag.IDENTITY):
            return pd.DataFrame(columns=["row", "target", "deviation", "z", "siblings"])
        keys = pd.Series(frame.groupby(by, dropna=False).ngroup(), index=frame.index)
        found = []
        for target in self.table.select(role=Role.TARGET):
            logs = np.log(frame[target].where(frame[target] > 0))
            deviation = logs - logs.groupby(keys).transform("median")
            spread = deviation.abs().groupby(keys).transform("median")
            others = logs.groupby(keys).transform("count") - 1
            told = pd.DataFrame(
                {
                    "row": self.keys[frame.index],
                    "target": target,
                    "deviation": deviation,
                    "z": deviation / (1.4826 * spread).clip(lower=_LEAST_SPREAD),
                    "siblings": others,
                }
            )
            found.append(told[deviation.notna() & (others >= _LEAST_SIBLINGS)])
        stacked: pd.DataFrame = pd.concat(found, ignore_index=True)
        stacked["siblings"] = stacked["siblings"].astype(int)
        return stacked

    def known(self, split: str, values: pd.Series) -> pd.Series:
        """Return how many training rows of its own fold have the same value as each test row, by row.

        `values` is by row; a missing value is known by no row.
        """
        parts = []
        for test, training in self._parts(split):
            counts = values[training].value_counts()
            parts.append(values[test].map(counts).fillna(0).astype(int))
        return pd.concat(parts) if parts else pd.Series(dtype=int)

    def is_forward(self, split: str) -> bool:
        """Whether every test row of a split was published after all that training knows."""
        when = self.names[WHEN]
        parts = list(self._parts(split))
        if when.isna().all() or not parts:
            return False
        return all(when[test].min() > when[training].max() for test, training in parts)

    def _parts(self, split: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        folds = self.folds.get(split, pd.DataFrame())
        for name in folds.columns:
            part = folds[name].to_numpy()
            yield part == "test", np.isin(part, ["train", "valid"])

    def _one(self, tag: Tag) -> str | None:
        return next(iter(self.table.select(tag=tag)), None)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "?" if np.isnan(value) else f"{value:g}"
    return str(value)
