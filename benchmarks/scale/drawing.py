"""Seconds and memory of every stage over the number of rows, both on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw(path: Path, results: Sequence[Any]) -> None:
    """Write the plot; entries have the attributes rows, stage, cpu and gib."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    stages = list(dict.fromkeys(result.stage for result in results))
    colors = plt.get_cmap("tab20")
    for number, stage in enumerate(stages):
        stage_results = sorted((result for result in results if result.stage == stage), key=lambda result: result.rows)
        rows = [result.rows for result in stage_results]
        style = {"marker": "osv^D"[number % 5], "color": colors(number % 20), "label": stage, "linewidth": 1.2}
        axes[0].plot(rows, [result.cpu for result in stage_results], **style)
        axes[1].plot(rows, [result.gib for result in stage_results], **style)
    all_rows = sorted({result.rows for result in results})
    if results and len(all_rows) > 1:
        start = max(result.cpu for result in results if result.rows == all_rows[0])
        guide = [start * rows / all_rows[0] for rows in all_rows]
        axes[0].plot(all_rows, guide, "k--", linewidth=1, label="linear growth")
    for axis, title in zip(axes, ("CPU seconds", "largest resident memory, GiB"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="rows of the dump", title=title)
        axis.grid(True, which="major", alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
