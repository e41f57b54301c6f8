"""Splits of served models and their energy: organizations, GPUs and batches that training does not have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Table, Tag
from perfcast.splits.checks import check_values
from perfcast.splits.declaration import declare_split
from perfcast.splits.grouped import unseen_entities
from perfcast.splits.row_groups import by_tag
from perfcast.splits.subsets import (
    as_frame,
    assigned,
    by_key,
    draw_validation,
    without_leaks,
)
from perfcast.utils.errors import UserError

_LARGEST = {"ml_energy_diffusion": 4.0}
_ITEMS = 64.0
"""Largest batch of training, of images or videos and of others."""


def _beyond(table: Table, fold: pd.Series, name: str, most: float) -> list[str]:
    larger = table.frame[name] > most
    learned = fold.isin(["train", "validation"])
    wrong = int((larger & learned).sum() + (~larger & (fold == "test")).sum())
    return [f"{wrong} rows on the wrong side of {name} {most:g}"] if wrong else []


def _older_gpus(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has GPUs older than the newest ones alone, and test these."""
    years = table.frame["generation_year"]
    return _beyond(table, fold, "generation_year", float(years[years < years.max()].max()))


def _small_batches(table: Table, fold: pd.Series) -> list[str]:
    """Check that training has small batches alone, and test larger ones."""
    return _beyond(table, fold, "concurrency", _LARGEST.get(table.dataset, _ITEMS))


@declare_split(
    "unseen organizations",
    "models of organizations without a result",
    check_values("organization"),
)
def unseen_organization(table: Table, seed: int) -> pd.DataFrame:
    """Test on the models of every organization once."""
    _require(table, "organization")
    return unseen_entities(table, seed, "organization")


@declare_split("newer GPUs", "the newest GPUs, trained on older ones", _older_gpus)
def newer_gpu(table: Table, seed: int) -> pd.DataFrame:
    """Test on the GPUs of the newest generation."""
    years = _require(table, "generation_year")
    return _one_fold(table, "generation_year", float(years[years < years.max()].max()), seed)


@declare_split(
    "larger batches",
    "batches of more than 64 requests or 4 items, trained on smaller ones",
    _small_batches,
)
def larger_batch(table: Table, seed: int) -> pd.DataFrame:
    """Test on larger batches than any training row has."""
    _require(table, "concurrency")
    return _one_fold(table, "concurrency", _LARGEST.get(table.dataset, _ITEMS), seed)


def _one_fold(table: Table, name: str, most: float, seed: int) -> pd.DataFrame:
    """Test on the rows above a value; the validation rows are of entities that are not in train."""
    ordered = by_key(table)
    test = (ordered.frame[name] > most).to_numpy()
    validation = draw_validation(by_tag(ordered, Tag.ENTITY), test, np.random.default_rng(seed))
    return as_frame(
        table,
        ordered,
        [without_leaks(assigned(test, validation), by_tag(ordered, Tag.BLOCK))],
    )


def _require(table: Table, name: str) -> pd.Series:
    if name not in table.frame:
        raise UserError(
            f"the split needs the column {name!r}",
            f"{table.dataset!r} has none",
            "choose another split",
        )
    return table.frame[name]
