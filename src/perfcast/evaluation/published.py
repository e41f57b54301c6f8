"""Figures that others published, as a tidy table to be shown beside one's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from perfcast.errors import UserError
from perfcast.evaluation.results import AVERAGE, PUBLISHED_COLUMNS
from perfcast.metric_names import METRICS


def published_figures(entries: Sequence[Mapping[str, Any]], tasks: Collection[str]) -> pd.DataFrame:
    """Return one line per published figure: columns PUBLISHED_COLUMNS.

    Each entry has `what` was fitted, the `split` of ours that asks what was asked there, the `citation`, and under the
    name of any of METRICS a mapping from task, or "average" for the mean over them, to the value. Units: as the metric.
    Raises: UserError when a task is none of `tasks`.
    """
    rows = []
    for entry in entries:
        for metric in METRICS:
            for task, value in entry.get(metric, {}).items():
                if task not in tasks and task != AVERAGE:
                    raise UserError(
                        f"a published {metric} must be of one of {', '.join(sorted(tasks))} or of the {AVERAGE}",
                        f"{entry['what']!r} has one of {task!r}",
                        "edit published in the data set's conf",
                    )
                rows.append(
                    (
                        entry["what"],
                        entry["split"],
                        task,
                        metric,
                        float(value),
                        entry["citation"],
                        entry.get("predictor", ""),
                    )
                )
    return pd.DataFrame(rows, columns=PUBLISHED_COLUMNS)
