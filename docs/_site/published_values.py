"""Values that others published, from conf/dataset, for the pages of results."""

from __future__ import annotations

from pathlib import Path

from markdown_text import table

from perfcast.config.conf_files import known
from perfcast.config.dataset_conf import read_dataset
from perfcast.schema.metric_names import PERCENT

_ACRONYMS = {"mape": "MAPE", "medape": "MedAPE"}
_HEADING = "Published by others, on rows drawn alike; the citation says where they differ:"


def sections(conf: Path, dataset: str) -> dict[str, str]:
    """Return a table of published values by split; none for a dataset without a conf."""
    if dataset not in known(conf, "dataset"):
        return {}
    lines: dict[str, list[list[str]]] = {}
    for entry in read_dataset(conf, dataset).published:
        for metric, by_task in entry.values.items():
            unit = " in %" if metric in PERCENT else ""
            values = ", ".join(f"{task} {value:g}" for task, value in by_task.items())
            row = [entry.what, f"{_ACRONYMS.get(metric, metric)}{unit}", values, entry.citation.strip()]
            lines.setdefault(entry.split, []).append(row)
    headings = ["method", "metric", "values", "source"]
    return {split: f"{_HEADING}\n\n{table(headings, rows)}" for split, rows in lines.items()}
