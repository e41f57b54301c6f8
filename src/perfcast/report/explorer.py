"""Points of a dataset as compact columns, which the script of the page draws and filters.

Everything is compressed (zlib) and in base64. Errors and half-widths are logarithms, stored as 16-bit integers; the
script decodes one run when it is chosen.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import BASELINE, Evaluation
from perfcast.evaluation.run_predictions import TARGET, YEAR
from perfcast.report.report_context import BLOCK, NAME, WHEN, Rows
from perfcast.schema.display_names import column_label
from perfcast.splits import split_label

MAX_POINTS = 900_000
"""Predictions of all datasets of a report together, which keeps the file below eight megabytes."""
_MAX_VALUES = 80
"""Values of a slice above which it is no filter, because the list would be too long."""
SCALE = 5_000
"""Logarithms are stored as integers after multiplication by this number: a hundredth of a percent is exact."""
NO_INTERVAL = 65_535
"""Stored half-width of a prediction without an interval."""
_LARGEST = 32_767
_UNSTATED = "not stated"


@dataclass(frozen=True)
class RunPoints:
    """Errors and half-widths of one predictor on one split, packed; the numbers are places in the lists of names."""

    split: int
    predictor: int
    text: str


def explorer_predictors(evaluation: Evaluation, leader: str) -> dict[str, str]:
    """Return every predictor, the leader first, with its role: chosen, smallest error on a split, baseline; or ""."""
    wins: dict[str, list[str]] = {}
    for split in evaluation.ranked_splits:
        errors = {
            name: float(row["value"])
            for name in evaluation.ranking()
            if (row := evaluation.value(split, name)) is not None
        }
        wins.setdefault(min(errors, key=lambda name: errors[name]), []).append(split)
    reasons: dict[str, list[str]] = {name: [] for name in [leader, *evaluation.ranking()]}
    reasons[leader].append("chosen")
    for name, won in wins.items():
        wins_all = len(won) == len(evaluation.ranked_splits) > 1
        where = "every split" if wins_all else " and ".join(map(split_label, won))
        reasons[name].append(f"smallest error on {where}")
    if BASELINE in reasons:
        reasons[BASELINE].append("baseline")
    return {name: ", ".join(why) for name, why in reasons.items()}


def explorer_view(evaluation: Evaluation, rows: Rows, leader: str, *, maximum: int = MAX_POINTS) -> dict[str, Any]:
    """Return the points as packed JSON and packed runs, and the choices of the controls.

    With more than `maximum` predictions, every k-th row is drawn, the same ones for all predictors.
    """
    predictors, points = explorer_predictors(evaluation, leader), evaluation.tables["points"]
    every = max(1, -(-len(points) // maximum))
    if every > 1:
        selected = pd.Index(sorted(points["row"].unique()))[::every]
        points = points[points["row"].isin(selected)]
    items = points.drop_duplicates(["row", "target"])[["row", "task", "target", "measured"]]
    items = items.sort_values(["row", "target"], ignore_index=True)
    filters = _filters(items, rows)
    places = pd.MultiIndex.from_frame(items[["row", "target"]])
    points = points.assign(item=places.get_indexer(pd.MultiIndex.from_frame(points[["row", "target"]])))
    runs, splits = [], []
    for number, split in enumerate(evaluation.splits):
        mine = points[points["split"] == split]
        tested = np.sort(mine["item"].unique())
        splits.append({"name": split, "items": _differences(tested)})
        for place, name in enumerate(predictors):
            if (text := _encode_run(mine[mine["predictor"] == name], tested)) is not None:
                runs.append(RunPoints(number, place, text))
    names = rows.names.loc[items["row"]]
    data = {
        "dataset": evaluation.dataset,
        "level": round(100 * evaluation.level),
        "every": every,
        "scale": SCALE,
        "measured": [float(f"{value:.5g}") for value in items["measured"]],
        "row": _front_code(items["row"].tolist()),
        "name": _code_text(names[NAME]),
        "block": _code_text(names[BLOCK]) if (names[BLOCK] != names[NAME]).any() else None,
        "month": _months(names[WHEN]),
        "filters": [
            {"label": entry["label"], "values": entry["values"], "codes": entry["codes"].tolist()} for entry in filters
        ],
        "splits": splits,
        "predictors": list(predictors),
    }
    lineage = [column_label(name) for name in evaluation.lineage_slices]
    return {
        "packed": _pack_json(data),
        "runs": runs,
        "splits": evaluation.splits,
        "predictors": predictors,
        "filters": filters,
        "color": next((place for place, entry in enumerate(filters) if entry["label"] in lineage), 0),
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


def _encode_run(points: pd.DataFrame, tested: np.ndarray) -> str | None:
    """Return errors, then half-widths of the intervals of one predictor in the order of the test items.

    None without a run.
    """
    if points.empty:
        return None
    ordered = points.sort_values("item", kind="stable")
    if len(ordered) != len(tested):
        raise ValueError("predictors of one split were tested on different rows")
    measured, predicted = (ordered[name].to_numpy(dtype=float) for name in ("measured", "predicted"))
    errors = np.clip(np.rint(np.log(predicted / measured) * SCALE), -_LARGEST, _LARGEST)
    half = np.rint(ordered["half_width"].to_numpy(dtype=float) * SCALE)
    half = np.where(np.isnan(half), NO_INTERVAL, np.minimum(half, NO_INTERVAL - 1))
    return _pack(errors.astype("<i2").tobytes() + half.astype("<u2").tobytes())


def _filters(items: pd.DataFrame, rows: Rows) -> list[dict[str, Any]]:
    """Return the filters of the points: task, target, slices and year; columns with one value are left out."""
    slices = rows.slices.loc[items["row"]].reset_index(drop=True)
    years = rows.names.loc[items["row"], WHEN].dt.year.astype("Int64").astype(str).reset_index(drop=True)
    columns = {"task": items["task"], TARGET: items["target"], **slices, YEAR: years.where(years != "<NA>")}
    filters = []
    for label, column in columns.items():
        text = column.astype("object").where(column.notna(), _UNSTATED).astype(str)
        counts = text.value_counts()
        if 1 < len(counts) <= _MAX_VALUES:
            values = sorted(counts.index, key=_number_first)
            codes = pd.Index(values).get_indexer(pd.Index(text))
            filters.append({"label": column_label(label), "values": values, "codes": codes})
    return filters


def _number_first(text: str) -> tuple[int, float, str]:
    """Return the key that sorts numbers by value, then texts, and what is not stated last."""
    try:
        return 0, float(text), text
    except ValueError:
        return (2 if text == _UNSTATED else 1), 0.0, text


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


def _pack(content: bytes) -> str:
    return b64encode(zlib.compress(content, level=9)).decode("ascii")


def _pack_json(data: Mapping[str, Any]) -> str:
    return _pack(json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8"))
