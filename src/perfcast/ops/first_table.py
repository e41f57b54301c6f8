"""Errors of one split as soon as its predictors are trained: what a person reads while the other splits train."""

from __future__ import annotations

from pathlib import Path

from perfcast.utils.io import read_object

_METRICS = ("mape", "medape")


def describe_split(folder: Path) -> str:
    """Return the test errors of the runs in the folder of a split as a table, the least error first.

    The table is no result yet: the leakage checks follow, and so does the average over tasks.
    """
    errors = {}
    for path in folder.glob("*/record.json"):
        metrics = read_object(path, "metrics")["metrics"]
        if all(isinstance(metrics.get(name), float) for name in _METRICS):
            errors[path.parent.name] = [metrics[name] for name in _METRICS]
    width = max(map(len, errors), default=0)
    lines = [f"{folder.parent.name} {folder.name}: MAPE / MedAPE of all test rows in %, before the leakage checks"]
    for name, values in sorted(errors.items(), key=lambda item: item[1]):
        lines.append(f"  {name:{width}}  " + " / ".join(f"{value:5.2f}" for value in values))
    return "\n".join(lines)
