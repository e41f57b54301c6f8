"""Errors that others published, as a tidy table to be shown beside one's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from perfcast.errors import UserError
from perfcast.evaluation.results import PUBLISHED_COLUMNS


def published_errors(entries: Sequence[Mapping[str, Any]], tasks: Collection[str]) -> pd.DataFrame:
    """Return one line per published error: columns PUBLISHED_COLUMNS.

    Each entry has `what` was fitted, the `split` of ours that asks what was asked there, the `citation`, and `mape`, a
    mapping from task to error. Units: %. Raises: UserError when a task is none of `tasks`.
    """
    for entry in entries:
        for task in entry["mape"]:
            if task not in tasks:
                raise UserError(
                    f"a published error must be of one of {', '.join(sorted(tasks))}",
                    f"{entry['what']!r} has one of {task!r}",
                    "edit published in the data set's conf",
                )
    rows = [
        (entry["what"], entry["split"], task, float(mape), entry["citation"])
        for entry in entries
        for task, mape in entry["mape"].items()
    ]
    return pd.DataFrame(rows, columns=PUBLISHED_COLUMNS)
