"""The comparison of two results as one HTML page that opens offline, in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Hashable
from importlib.resources import files
from typing import Any

import matplotlib
import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.results_diff import Changes, diff_text
from perfcast.evaluation.results_diff.diff_text import READING
from perfcast.evaluation.results_diff.metric_changes import BETTER, REAL, SAME, UNKNOWN, WORSE
from perfcast.report.plots.drawing import MUTED, STYLE, inline_svg, panels, plain_axis, to_svg
from perfcast.schema.display_names import metric_label


def as_page(changes: Changes) -> str:
    """Return the page; equal comparisons give equal text. Style, script and plots are inside; nothing is loaded."""
    report = files("perfcast.report") / "templates"
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = templates.from_string(
        (files("perfcast.evaluation.results_diff") / "diff_page.html").read_text(encoding="utf-8")
    )
    frame = changes.metrics.frame
    return page.render(
        style=Markup((report / "report.css").read_text(encoding="utf-8")),
        script=Markup((report / "report.js").read_text(encoding="utf-8")),
        changes=changes,
        summary=diff_text.summary(changes),
        reading=READING,
        title=TITLE,
        caption=CAPTION,
        parts={
            "Data": diff_text.data_lines(changes),
            "Code": diff_text.code_lines(changes),
            "Parameters": diff_text.parameter_lines(changes),
            "Rows and runs left out": diff_text.row_lines(changes),
        },
        datasets=[_view(str(name), rows) for name, rows in frame.groupby("dataset", sort=False)],
    )


def _view(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the view of one dataset for the template: its plot, its real changes, and all of them."""
    rows = [(row["verdict"] in REAL, _cells(row)) for row in diff_text.real_first(frame).to_dict("records")]
    svg = draw_differences(frame)
    return {
        "name": name,
        "plot": None if svg is None else Markup(inline_svg(svg, prefix=name, label=CAPTION)),
        "real": [cells for real, cells in rows if real],
        "all": [cells for _, cells in rows],
    }


def _cells(row: dict[Hashable, Any]) -> list[tuple[str, str, float | None]]:
    """Return the cells of one row: text, class, and the number that sorts it."""
    names = [(str(row[key]), "text", None) for key in ("split", "predictor", "task")]
    bounds = f"{diff_text.signed(row['low'])} to {diff_text.signed(row['high'])}" if math.isfinite(row["low"]) else "–"
    return [
        *names,
        (metric_label(row["metric"], short=True), "text", None),
        (diff_text.number(row["before"]), "", _key(row["before"])),
        (diff_text.number(row["after"]), "", _key(row["after"])),
        (diff_text.signed(row["difference"]), "", _key(row["difference"])),
        (bounds, "", _key(row["low"])),
        ("–" if math.isnan(row["p"]) else f"{row['p']:.3f}", "", _key(row["p"])),
        (str(row["verdict"]), "text", float((*REAL, SAME, UNKNOWN).index(row["verdict"]))),
    ]


def _key(value: float) -> float | None:
    return None if math.isnan(value) else value


TITLE = "Differences of the MAPE, B − A, in percentage points"
CAPTION = (
    "MAPE of B minus that of A in percentage points, averaged over tasks, with paired 95 % intervals clustered by "
    "entity. Left of the line B is better. Gray: no real change."
)
# of Okabe and Ito, as in all plots; the arrow repeats the meaning of the color
_LOOKS: dict[str, dict[str, Any]] = {
    BETTER: {"color": "#0072b2", "marker": "<"},
    WORSE: {"color": "#d55e00", "marker": ">"},
    SAME: {"color": MUTED, "marker": "o"},
}


def draw_differences(changes: pd.DataFrame) -> str | None:
    """Return the differences of one dataset as SVG, None where nothing differs.

    Shapes: `changes` as `MetricChanges.frame`, rows of one dataset.
    """
    rows = changes[(changes["task"] == AVERAGE) & (changes["metric"] == "mape")]
    if (rows["difference"] == 0).all():
        return None
    splits = list(dict.fromkeys(rows["split"]))
    order = list(dict.fromkeys(rows["predictor"]))
    with matplotlib.rc_context(STYLE):
        height = 0.22 * len(order) + 0.9
        figure, axes = panels(len(splits), columns=4, height=height, sharey=True)
        for panel, split in zip(axes, splits, strict=True):
            _panel(panel, rows[rows["split"] == split], order)
            panel.set_title(split)
        axes[0].set_yticks(range(len(order)), order)
        axes[0].set_ylim(len(order) - 0.5, -0.5)
        handles = [Line2D([], [], linestyle="none", label=verdict, **look) for verdict, look in _LOOKS.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        return to_svg(figure, TITLE)


def _panel(panel: Axes, rows: pd.DataFrame, order: list[str]) -> None:
    panel.axvline(0, color=MUTED, linewidth=1)
    panel.grid(visible=False, axis="y")
    panel.locator_params(axis="x", nbins=5)
    for row in rows.to_dict("records"):
        look, position = _LOOKS.get(row["verdict"], _LOOKS[SAME]), order.index(row["predictor"])
        if math.isfinite(row["low"]):
            panel.plot([row["low"], row["high"]], [position] * 2, color=look["color"])
        panel.plot(row["difference"], position, linestyle="none", **look)
    plain_axis(panel, "x")
