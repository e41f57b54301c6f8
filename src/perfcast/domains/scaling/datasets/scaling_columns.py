"""Columns that the tables of trained language models share: one row per trained model and task."""

from __future__ import annotations

from perfcast.schema.declare import category
from perfcast.schema.table import Column, Kind, Role, Tag

LOSS = "loss"
BITS = "bpb"
ACCURACY = "accuracy"
"""Kinds of a task: nat per token, bits per byte of the correct answer, share of correct answers."""
FLOP_PER_PARAM_TOKEN = 6.0
"""Floating-point operations of training per parameter and token. Source: Kaplan et al., 2020, arXiv 2001.08361."""


def number(
    name: str,
    group: str,
    meaning: str,
    unit: str = "",
    *tags: Tag,
    high: float | None = None,
) -> Column:
    """Declare a feature that is a number, at least 0."""
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, 0, high, tags)


_TASK = "validation set or benchmark, with the kind of result"
_LOSS_TASK = "task of the same model whose loss or bits per byte precede an accuracy"
_UNIT = "nat, bit/byte or share"
_TARGET = "loss in nat per token, bits per byte, or share of correct answers"
RESULT_COLUMNS = (
    category("result_id", Role.KEY, "evaluation", "name of the run and the task", Tag.ROW),
    category("task", Role.KEY, "evaluation", _TASK, Tag.TASK, Tag.CONFIG),
    category(
        "task_kind",
        Role.KEY,
        "evaluation",
        "loss, bpb (bits per byte) or accuracy",
        Tag.SLICE,
    ),
    category("loss_task", Role.KEY, "evaluation", _LOSS_TASK),
    number("chance", "evaluation", "share of correct answers of a random choice", high=1),
)
TRAINING_COLUMNS = (
    number("params", "model", "parameters", "", Tag.SCALING),
    number("tokens", "training", "tokens seen in training", "", Tag.SCALING),
    # in units of 1e18 operations, because tables hold no number above 1e18
    number(
        "compute",
        "training",
        "operations of training: 6 x parameters x tokens",
        "EFLOP",
        Tag.SCALING,
    ),
)
TARGET_COLUMN = Column("value", Kind.NUMERICAL, Role.TARGET, "evaluation", _UNIT, _TARGET, 0)
PLACE_COLUMNS = (
    category("source_file", Role.PROVENANCE, "evaluation", "file of the row"),
    Column(
        "source_line",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "evaluation",
        meaning="line of that file",
        low=1,
    ),
)
