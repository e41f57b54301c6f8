"""The points of a data set as compact columns, which the page's script draws and filters.

Whole numbers stand for what the page needs no more digits of: an error is told to a hundredth of a percent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from perfcast.evaluation import BASELINE, Evaluation
from perfcast.evaluation.predictions import TARGET, YEAR
from perfcast.report.rows import BLOCK, NAME, WHEN, Rows

MOST_POINTS = 350_000
"""Points of all data sets of a report together: what keeps the file below eight megabytes."""
_MOST_VALUES = 80
"""Values of a slice above which choosing from a list helps nobody."""
_PARTS = 10_000
"""Errors and half-widths are told in such parts of one."""


def shown_predictors(evaluation: Evaluation, leader: str) -> dict[str, str]:
    """Return the few predictors that are drawn, with why: chosen, least error on a question, baseline."""
    wins: dict[str, list[str]] = {}
    for split in evaluation.questions:
        errors = {
            name: float(row["value"])
            for name in evaluation.ranking()
            if (row := evaluation.value(split, name)) is not None
        }
        wins.setdefault(min(errors, key=lambda name: errors[name]), []).append(split)
    found: dict[str, list[str]] = {leader: ["chosen"]}
    for name, won in wins.items():
        every = len(won) == len(evaluation.questions) > 1
        found.setdefault(name, []).append("least error on " + ("every question" if every else " and ".join(won)))
    if BASELINE in evaluation.predictors:
        found.setdefault(BASELINE, []).append("baseline")
    return {name: ", ".join(why) for name, why in found.items()}


def explorer(evaluation: Evaluation, rows: Rows, leader: str, *, most: int = MOST_POINTS) -> dict[str, Any]:
    """Return what the template of the plot needs: its points as JSON, and the choices of its controls.

    Where there are more than `most` points, every k-th row is drawn, the same ones for all predictors.
    """
    predictors = shown_predictors(evaluation, leader)
    points = evaluation.points[evaluation.points["predictor"].isin(predictors)]
    every = max(1, -(-len(points) // most))
    if every > 1:
        kept = pd.Index(sorted(points["row"].unique()))[::every]
        points = points[points["row"].isin(kept)]
    items = points.drop_duplicates(["row", "target"])[["row", "task", "target", "measured"]]
    items = items.sort_values(["row", "target"], ignore_index=True)
    filters = _filters(items, rows)
    where = pd.MultiIndex.from_frame(items[["row", "target"]])
    runs, splits = [], []
    for split in evaluation.splits:
        mine = points[points["split"] == split]
        tested = np.sort(where.get_indexer(pd.MultiIndex.from_frame(mine[["row", "target"]].drop_duplicates())))
        splits.append({"name": split, "items": _steps(tested)})
        runs.append([_run(mine[mine["predictor"] == name], where, tested) for name in predictors])
    names = rows.names.loc[items["row"]]
    data = {
        "level": round(100 * evaluation.level),
        "every": every,
        "measured": [float(f"{value:.5g}") for value in items["measured"]],
        "row": _fronted(items["row"].tolist()),
        "name": _coded(names[NAME]),
        "block": _coded(names[BLOCK]) if (names[BLOCK] != names[NAME]).any() else None,
        "month": _months(names[WHEN]),
        "filters": [{"label": one["label"], "values": one["values"], "codes": one["codes"]} for one in filters],
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


def budgets(sizes: Sequence[int], most: int = MOST_POINTS) -> list[int]:
    """Return how many of `most` points each data set may draw: small ones all of theirs, large ones equal parts."""
    shares, left = [0] * len(sizes), most
    order = sorted(range(len(sizes)), key=lambda place: sizes[place])
    for done, place in enumerate(order):
        shares[place] = min(sizes[place], left // (len(order) - done))
        left -= shares[place]
    return [max(share, 1) for share in shares]


def _run(points: pd.DataFrame, where: pd.MultiIndex, tested: np.ndarray) -> dict[str, Any] | None:
    """Return one predictor's answers in the order of the tested items: error and half-width; None without a run."""
    if points.empty:
        return None
    places = np.argsort(where.get_indexer(pd.MultiIndex.from_frame(points[["row", "target"]])), kind="stable")
    ordered = points.iloc[places]
    if len(ordered) != len(tested):
        raise ValueError("predictors of one split were tested on different rows")
    off = ordered["predicted"].to_numpy(dtype=float) / ordered["measured"].to_numpy(dtype=float) - 1
    half = ordered["half"].to_numpy(dtype=float)
    return {"off": _whole(off), "half": None if np.isnan(half).all() else _whole(np.nan_to_num(half, nan=-1 / _PARTS))}


def _filters(items: pd.DataFrame, rows: Rows) -> list[dict[str, Any]]:
    """Return what points can be chosen by: task, target, slices and year; what has one value chooses nothing."""
    slices = rows.slices.loc[items["row"]].reset_index(drop=True)
    years = rows.names.loc[items["row"], WHEN].dt.year.astype("Int64").astype(str).reset_index(drop=True)
    columns = {"task": items["task"], TARGET: items["target"], **slices, YEAR: years.where(years != "<NA>")}
    found = []
    for label, column in columns.items():
        text = column.astype("object").where(column.notna(), "not stated").astype(str)
        counts = text.value_counts()
        if 1 < len(counts) <= _MOST_VALUES:
            values = sorted(counts.index)
            codes = pd.Index(values).get_indexer(pd.Index(text)).tolist()
            found.append({"label": label.replace("_", " "), "values": values, "codes": codes})
    return found


def _months(when: pd.Series) -> dict[str, Any] | None:
    """Return the months since the first, -1 where a row has no date; None where none has."""
    if when.isna().all():
        return None
    months = when.dt.year * 12 + when.dt.month - 1
    first = int(months.min())
    return {"first": first, "since": (months - first).fillna(-1).astype(int).tolist()}


def _coded(text: pd.Series) -> dict[str, Any]:
    """Return repeated text as a list of values, front coded, and steps from one code to the next."""
    codes, values = pd.factorize(text)
    return {"values": _fronted([str(value) for value in values]), "codes": _steps(codes)}


def _fronted(texts: Sequence[str]) -> dict[str, Any]:
    """Return texts front coded: how many characters each shares with the one before, and its other characters."""
    shared, rest, before = [], [], ""
    for text in texts:
        count = _shared(before, text)
        shared.append(count)
        rest.append(text[count:].replace("\n", " "))
        before = text
    return {"shared": shared, "rest": "\n".join(rest)}


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    for place, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            return place
    return min(len(one), len(other))


def _steps(values: np.ndarray) -> list[int]:
    steps: list[int] = np.diff(np.asarray(values, dtype=int), prepend=0).tolist()
    return steps


def _whole(values: np.ndarray) -> list[int]:
    whole: list[int] = np.rint(values * _PARTS).astype(int).tolist()
    return whole


def _json(data: Mapping[str, Any]) -> Markup:
    """Return JSON that can stand inside a script element: no character of it ends the element."""
    return Markup(json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))
