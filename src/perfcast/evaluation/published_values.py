"""Values that others published, as a tidy table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from perfcast.evaluation.evaluation_tables import AVERAGE, PUBLISHED_COLUMNS
from perfcast.schema.metric_names import METRICS
from perfcast.utils.errors import UserError


def tabulate_published_values(entries: Sequence[Mapping[str, Any]], tasks: Collection[str]) -> pd.DataFrame:
    """Return one line per published value: columns PUBLISHED_COLUMNS.

    Each entry has the method (`what`), the `split` whose test rows are drawn alike, the `citation`, and under the
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
                        "edit `published` in the conf of the dataset",
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
