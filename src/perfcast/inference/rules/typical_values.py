"""Values that a dataset takes as typical of a described machine: facts, what they imply, and what is usual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, EntityFacts
from perfcast.inference.donors import Block, JointRules


class TypicalValues:
    """Values of a dataset without knowledge about machines: nothing is filled.

    Methods that fill take and return every standard column; they fill missing cells, change no given one, and return
    the same object where there is nothing to fill.
    """

    enumerated: str | None = None
    """Column with an answer for each of its values where a machine leaves it out, see `list_alternatives`."""
    held_equal: tuple[str, ...] = ()
    """Columns of which all candidates of a ranking that state none have one value, in this order."""
    blocks: tuple[Block, ...] = ()
    """Blocks of hot-deck imputation, in this order: later ones may use what earlier ones filled."""
    joint: JointRules | None = None
    """Rules of typical set-ups; without them, usual values alone are assumed."""

    @property
    def block_columns(self) -> list[str]:
        """The columns of all blocks, in their order."""
        return [name for block in self.blocks for name in block.columns]

    def read_entity_facts(
        self, raw: Mapping[str, Path], measured: Iterable[str], as_of: pd.Timestamp | None = None
    ) -> pd.DataFrame:
        """Return the facts of every listed or measured entity, one row per key (index), with standard columns.

        `raw` maps the ingested sources to their folders. Only facts that were public before `as_of` count.
        """
        return pd.DataFrame()

    def add_user_facts(self, champion: Any, path: Path) -> Any:
        """Return the champion with the facts of a user's table; machines without facts stay as they are."""
        return champion

    def fill_entity_facts(self, cells: Cells, facts: EntityFacts) -> Cells:
        """Fill what is known of the entities; `facts` is the table of `read_entity_facts`."""
        return cells

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill what other cells of the same row imply."""
        return cells

    def fill_date(self, cells: Cells, when: pd.Series | pd.Timestamp) -> Cells:
        """Fill what follows from the day of the measurement, asked for or of every machine, (n,), beside `day`."""
        return cells

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill usual values that need no donor; `last` is the month of the newest result."""
        return cells

    def list_alternatives(self, cells: Cells) -> list[tuple[float, ...]]:
        """Return the values of `enumerated` that every row can have, beside those of measured results."""
        return [()] * len(cells.index)

    def count_variants(self, cells: Cells) -> np.ndarray:
        """Return of how many kinds every row may be, with equal chances, (n,) int."""
        return np.ones(len(cells.index), dtype=int)

    def fill_variant(self, cells: Cells, numbers: np.ndarray, facts: EntityFacts) -> Cells:
        """Fill the facts of one of the kinds that every row may be, by its number from 0, -1 for none, (n,) int."""
        return cells
