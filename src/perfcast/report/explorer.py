"""Chart of single predictions, which Vega-Lite draws in the page with its own controls."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.report.plots.drawing import PALETTE
from perfcast.report.report_context import BLOCK, NAME, WHEN, DatasetPart
from perfcast.schema.display_names import column_label
from perfcast.splits import split_label

MAX_POINTS = 900_000
"""Predictions of all datasets of a report together, which keeps its files below eight megabytes."""
_MAX_COLORS = 12
_SCRIPTS = ("vega", "vega-lite", "vega-embed")
_NAMES = ["row", NAME, BLOCK]


def _vega_code() -> str | None:
    """Return the packed scripts of Vega with their licenses, as Snakemake ships them; None without Snakemake."""
    try:
        folder = Path(str(distribution("snakemake").locate_file("snakemake/assets/data")))
    except PackageNotFoundError:
        return None
    parts = ((folder / name / "LICENSE", folder / name / f"{name}.js") for name in _SCRIPTS)
    texts = (f"/* {terms.read_text('utf-8')} */\n{script.read_text('utf-8')}" for terms, script in parts)
    return _pack("\n".join(texts))


def explorer_data(part: DatasetPart, leader: str, every: int = 1) -> dict[str, Any] | None:
    """Return the packed chart of every k-th row and the scripts of Vega; None without them or the dataset's table."""
    code = _vega_code() if part.rows else None
    if code is None:
        return None
    text = json.dumps(make_chart(part, leader, every), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return {"vega": code, "chart": _pack(text), "every": every}


def make_chart(part: DatasetPart, leader: str, every: int = 1) -> dict[str, Any]:
    """Return the specification of the chart with the data of every k-th row: errors of every predictor in %."""
    predictors = [leader, *(name for name in part.evaluation.ranking() if name != leader)]
    frame, colors = _chart_rows(part, every)
    splits = part.evaluation.splits
    filters = {name: sorted(frame[name].unique()) for name in ("task", "target") if name in colors}
    shown = [*_NAMES, *colors, "published", "measured", "predicted (estimate)", "error in %"]
    chart: dict[str, Any] = json.loads((files("perfcast.report") / "templates" / "chart.json").read_text("utf-8"))
    chart["data"]["values"] = [{name: column.replace({np.nan: None}).tolist() for name, column in frame.items()}]
    chart["params"][:0] = [
        _choice("split", splits, map(split_label, splits)),
        _choice("predictor", predictors, map(part.evaluation.label, predictors)),
        *(_choice(name, [None, *values], ["all", *values]) for name, values in filters.items()),
        _choice("color", colors, map(column_label, colors)),
    ]
    chart["transform"][0]["flatten"] = list(frame)
    chart["transform"][2:2] = [{"filter": f"!{name} || datum.{name} == {name}"} for name in filters]
    encoding = chart["layer"][1]["encoding"]
    encoding["color"]["scale"]["range"] = list(PALETTE)
    encoding["tooltip"] = [
        {"field": name, "title": column_label(name), **({"format": ",.4~g"} if name in shown[-3:] else {})}
        for name in shown
        if name not in frame or frame[name].replace("", None).notna().any()
    ]
    if frame["published"].notna().any():
        encoding["x"] = {"field": "published", "type": "temporal", "title": "published"}
    return chart


def _chart_rows(part: DatasetPart, every: int) -> tuple[pd.DataFrame, list[str]]:
    """Return a row per split and result with the error of every predictor in %, and the columns that can color."""
    assert part.rows is not None
    points = part.evaluation.tables["points"]
    points = points[points["row"].isin(pd.Index(sorted(points["row"].unique()))[::every])]
    measured = points["measured"].where(points["measured"] > 0)
    index = ["row", "target", "task", "split"]  # the splits of a row follow each other, which packs well
    frame = points.assign(error=(100.0 * (points["predicted"] / measured - 1)).round(1))
    frame = frame.pivot_table(index=[*index, "measured"], columns="predictor", values="error").reset_index()
    slices = part.rows.slices.loc[frame["row"]].reset_index(drop=True).drop(columns=index, errors="ignore")
    names = part.rows.names.loc[frame["row"]].reset_index(drop=True)
    frame = frame.join(slices.fillna("not stated").astype(str)).join(names[[NAME, BLOCK]])
    frame["published"] = names[WHEN].dt.strftime("%Y-%m-%d")
    frame["measured"] = [float(f"{value:.4g}") for value in frame["measured"]]
    colors = [name for name in ("task", "target", *slices) if 1 < frame[name].nunique() <= _MAX_COLORS] or ["task"]
    return frame.drop(columns=[name for name in slices if name not in colors]), colors


def _choice(name: str, options: Any, labels: Any) -> dict[str, Any]:
    options = list(options)
    return {"name": name, "value": options[0], "bind": {"input": "select", "options": options, "labels": list(labels)}}


def _pack(text: str) -> str:
    return b64encode(zlib.compress(text.encode("utf-8"), level=9)).decode("ascii")
