"""Points of a dataset as compact columns, which the script of the page draws and filters.

Errors are stored as integers in hundredths of a percent, which keeps the file small.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from perfcast.evaluation import BASELINE, Evaluation
from perfcast.evaluation.run_predictions import TARGET, YEAR
from perfcast.report.report_context import BLOCK, NAME, WHEN, Rows
from perfcast.schema.display_names import column_label

MAX_POINTS = 350_000
"""Points of all datasets of a report together, which keeps the file below eight megabytes."""
_MAX_VALUES = 80
"""Values of a slice above which it is no filter, because the list would be too long."""
_SCALE = 10_000
"""Errors and half-widths are stored as integers after multiplication by this number."""


def shown_predictors(evaluation: Evaluation, leader: str) -> dict[str, str]:
    """Return the predictors that are drawn, with the reason: chosen, smallest error on a split, baseline."""
    wins: dict[str, list[str]] = {}
    for split in evaluation.ranked_splits:
        errors = {
            name: float(row["value"])
            for name in evaluation.ranking()
            if (row := evaluation.value(split, name)) is not None
        }
        wins.setdefault(min(errors, key=lambda name: errors[name]), []).append(split)
    reasons: dict[str, list[str]] = {leader: ["chosen"]}
    for name, won in wins.items():
        wins_all = len(won) == len(evaluation.ranked_splits) > 1
        reasons.setdefault(name, []).append("smallest error on " + ("every split" if wins_all else " and ".join(won)))
    if BASELINE in evaluation.predictors:
        reasons.setdefault(BASELINE, []).append("baseline")
    return {name: ", ".join(why) for name, why in reasons.items()}


def explorer_view(evaluation: Evaluation, rows: Rows, leader: str, *, maximum: int = MAX_POINTS) -> dict[str, Any]:
    """Return the points as JSON, and the choices of the controls.

    With more than `maximum` points, every k-th row is drawn, the same ones for all predictors.
    """
    predictors = shown_predictors(evaluation, leader)
    points = evaluation.points[evaluation.points["predictor"].isin(predictors)]
    every = max(1, -(-len(points) // maximum))
    if every > 1:
        selected = pd.Index(sorted(points["row"].unique()))[::every]
        points = points[points["row"].isin(selected)]
    items = points.drop_duplicates(["row", "target"])[["row", "task", "target", "measured"]]
    items = items.sort_values(["row", "target"], ignore_index=True)
    filters = _filters(items, rows)
    where = pd.MultiIndex.from_frame(items[["row", "target"]])
    runs, splits = [], []
    for split in evaluation.splits:
        mine = points[points["split"] == split]
        tested = np.sort(where.get_indexer(pd.MultiIndex.from_frame(mine[["row", "target"]].drop_duplicates())))
        splits.append({"name": split, "items": _differences(tested)})
        runs.append([_run(mine[mine["predictor"] == name], where, tested) for name in predictors])
    names = rows.names.loc[items["row"]]
    data = {
        "level": round(100 * evaluation.level),
        "every": every,
        "measured": [float(f"{value:.5g}") for value in items["measured"]],
        "row": _front_code(items["row"].tolist()),
        "name": _code_text(names[NAME]),
        "block": _code_text(names[BLOCK]) if (names[BLOCK] != names[NAME]).any() else None,
        "month": _months(names[WHEN]),
        "filters": [{"label": entry["label"], "values": entry["values"], "codes": entry["codes"]} for entry in filters],
        "splits": splits,
        "predictors": list(predictors),
        "runs": runs,
    }
    return {
        "json": _json(data),
        "splits": evaluation.splits,
        "predictors": predictors,
        "filters": filters,
        "dated": data["month"] is not None,
        "every": every,
    }


def point_budgets(sizes: Sequence[int], maximum: int = MAX_POINTS) -> list[int]:
    """Return the number of points of each dataset, `maximum` together: small ones draw all, large ones equal shares."""
    shares, left = [0] * len(sizes), maximum
    order = sorted(range(len(sizes)), key=lambda place: sizes[place])
    for done, place in enumerate(order):
        shares[place] = min(sizes[place], left // (len(order) - done))
        left -= shares[place]
    return [max(share, 1) for share in shares]


def _run(points: pd.DataFrame, where: pd.MultiIndex, tested: np.ndarray) -> dict[str, Any] | None:
    """Return errors and half-widths of one predictor in the order of the test items; None without a run."""
    if points.empty:
        return None
    places = np.argsort(where.get_indexer(pd.MultiIndex.from_frame(points[["row", "target"]])), kind="stable")
    ordered = points.iloc[places]
    if len(ordered) != len(tested):
        raise ValueError("predictors of one split were tested on different rows")
    off = ordered["predicted"].to_numpy(dtype=float) / ordered["measured"].to_numpy(dtype=float) - 1
    half = ordered["half_width"].to_numpy(dtype=float)
    return {
        "off": _as_integers(off),
        "half_width": None if np.isnan(half).all() else _as_integers(np.nan_to_num(half, nan=-1 / _SCALE)),
    }


def _filters(items: pd.DataFrame, rows: Rows) -> list[dict[str, Any]]:
    """Return the filters of the points: task, target, slices and year; columns with one value are left out."""
    slices = rows.slices.loc[items["row"]].reset_index(drop=True)
    years = rows.names.loc[items["row"], WHEN].dt.year.astype("Int64").astype(str).reset_index(drop=True)
    columns = {"task": items["task"], TARGET: items["target"], **slices, YEAR: years.where(years != "<NA>")}
    filters = []
    for label, column in columns.items():
        text = column.astype("object").where(column.notna(), "not stated").astype(str)
        counts = text.value_counts()
        if 1 < len(counts) <= _MAX_VALUES:
            values = sorted(counts.index)
            codes = pd.Index(values).get_indexer(pd.Index(text)).tolist()
            filters.append({"label": column_label(label), "values": values, "codes": codes})
    return filters


def _months(when: pd.Series) -> dict[str, Any] | None:
    """Return the months since the first, -1 where a row has no date; None where none has."""
    if when.isna().all():
        return None
    months = when.dt.year * 12 + when.dt.month - 1
    first = int(months.min())
    return {"first": first, "since": (months - first).fillna(-1).astype(int).tolist()}


def _code_text(text: pd.Series) -> dict[str, Any]:
    """Return repeated text as a list of values, front coded, and steps from one code to the next."""
    codes, values = pd.factorize(text)
    return {"values": _front_code([str(value) for value in values]), "codes": _differences(codes)}


def _front_code(texts: Sequence[str]) -> dict[str, Any]:
    """Return texts front coded: how many characters each shares with the one before, and its other characters."""
    shared, tails, before = [], [], ""
    for text in texts:
        count = _count_shared(before, text)
        shared.append(count)
        tails.append(text[count:].replace("\n", " "))
        before = text
    return {"shared": shared, "rest": "\n".join(tails)}


def _count_shared(before: str, text: str) -> int:
    """Return the number of characters that two texts have in common at their beginning."""
    for place, (first, second) in enumerate(zip(before, text, strict=False)):
        if first != second:
            return place
    return min(len(before), len(text))


def _differences(values: np.ndarray) -> list[int]:
    steps: list[int] = np.diff(np.asarray(values, dtype=int), prepend=0).tolist()
    return steps


def _as_integers(values: np.ndarray) -> list[int]:
    whole: list[int] = np.rint(values * _SCALE).astype(int).tolist()
    return whole


def _json(data: Mapping[str, Any]) -> Markup:
    """Return JSON that can stand inside a script element: no character of it ends the element."""
    return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))
