"""A comparison as one HTML page that opens offline, in the report's style."""

from __future__ import annotations

import math
from collections.abc import Hashable
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from perfcast.comparing import words
from perfcast.comparing.changes import Changes
from perfcast.comparing.drawing import CAPTION, TITLE, draw_differences
from perfcast.comparing.text import READING
from perfcast.comparing.verdicts import REAL, SAME, UNKNOWN
from perfcast.report.inline_svg import inline_svg


def as_page(changes: Changes) -> str:
    """Return the page; equal comparisons give equal text. Style, script and figures are inside; nothing is loaded."""
    report = files("perfcast.report.templates")
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = templates.from_string((files("perfcast.comparing") / "page.html").read_text(encoding="utf-8"))
    frame = changes.metrics.frame
    return page.render(
        style=Markup((report / "report.css").read_text(encoding="utf-8")),
        script=Markup((report / "report.js").read_text(encoding="utf-8")),
        changes=changes,
        summary=words.summary(changes),
        reading=READING,
        title=TITLE,
        caption=CAPTION,
        parts={
            "Data": words.data_lines(changes),
            "Code": words.code_lines(changes),
            "Parameters": words.parameter_lines(changes),
            "Rows and runs left out": words.row_lines(changes),
        },
        datasets=[_view(str(name), own) for name, own in frame.groupby("dataset", sort=False)],
    )


def _view(name: str, own: pd.DataFrame) -> dict[str, Any]:
    """Return one data set as the template reads it: its figure, its real changes, and all of them."""
    rows = [(row["verdict"] in REAL, _cells(row)) for row in words.real_first(own).to_dict("records")]
    svg = draw_differences(own)
    return {
        "name": name,
        "figure": None if svg is None else Markup(inline_svg(svg, prefix=name, label=CAPTION)),
        "real": [cells for real, cells in rows if real],
        "all": [cells for _, cells in rows],
    }


def _cells(row: dict[Hashable, Any]) -> list[tuple[str, str, float | None]]:
    """Return the cells of one row: text, class, and the number that sorts it."""
    names = [(str(row[key]), "text", None) for key in ("split", "predictor", "task")]
    bounds = f"{words.signed(row['low'])} to {words.signed(row['high'])}" if math.isfinite(row["low"]) else "–"
    return [
        *names,
        (words.LABELS[row["metric"]], "text", None),
        (words.number(row["before"]), "", _key(row["before"])),
        (words.number(row["after"]), "", _key(row["after"])),
        (words.signed(row["difference"]), "", _key(row["difference"])),
        (bounds, "", _key(row["low"])),
        ("–" if math.isnan(row["p"]) else f"{row['p']:.3f}", "", _key(row["p"])),
        (str(row["verdict"]), "text", float((*REAL, SAME, UNKNOWN).index(row["verdict"]))),
    ]


def _key(value: float) -> float | None:
    return None if math.isnan(value) else value
