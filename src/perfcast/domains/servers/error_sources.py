"""Sources of error: the error that would remain if the level of a group of machines were known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.text_tables import Section, TextTable, number, text_section
from perfcast.schema.table import Table, Tag
from perfcast.splits import split_label
from perfcast.utils.errors import UserError

ERROR_SOURCE_COLUMNS = ["split", "predictor", "step", "known", "task", "mape", "medape", "share"]
"""`step`: from 0, nothing known, to the last one. `known`: what is known in addition to the steps before it. `share`:
part of the error of step 0 that this step takes away."""

_SHRINKAGES = (0, 1, 2, 4, 8, 16, 32, 64)

_TEXT = (
    "An oracle adds what no prediction can know before a measurement: the level of a group of test machines, which is "
    "the median deviation of its other results. Each step knows those before it. What a step takes away is the share "
    "of the error that such a level causes. Values are averages over tasks, in %."
)

NOTHING, CONFIGURATION = "nothing", "the whole configuration"
"""Names of the first and the last step."""


def tabulate_error_sources(points: pd.DataFrame, table: Table, *, steps: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the error of every predictor after each step of an oracle, by task and averaged over tasks.

    A step knows the level of each group of test rows that agree on the columns of `steps` up to this one, see
    `subtract_level`. The last step knows the groups of equal configurations (CONFIG columns).
    Shapes: `points` as in `Evaluation` -> ERROR_SOURCE_COLUMNS. Units: %.
    Raises: UserError when the table lacks a column of `steps`.
    """
    keys = {
        step: table.frame.groupby(columns, dropna=False, sort=False).ngroup()
        for step, columns in _cumulated(steps, table)
    }
    if points.empty:
        return pd.DataFrame(columns=ERROR_SOURCE_COLUMNS)
    rows = pd.Index(table.frame[table.column_of(Tag.ROW)]).get_indexer(pd.Index(points["row"]))
    parts = []
    for index in points.groupby(["split", "predictor"], sort=False).indices.values():
        part = points.iloc[index]
        residual = np.log(part["predicted"].to_numpy(dtype=float) / part["measured"].to_numpy(dtype=float))
        outputs = (part["task"].astype(str) + part["target"].astype(str)).to_numpy()
        summary = _summarize(part["task"], residual)
        lines = [summary.assign(step=0, known=NOTHING)]
        for place, (step, key) in enumerate(keys.items(), start=1):
            groups, before = key.to_numpy()[rows[index]], residual
            residual = before.copy()
            for output in np.unique(outputs):
                tested = outputs == output
                residual[tested] = subtract_level(before[tested], groups[tested])
            lines.append(_summarize(part["task"], residual).assign(step=place, known=step))
        run = part[["split", "predictor"]].iloc[0]
        parts.append(pd.concat(lines).assign(split=run["split"], predictor=run["predictor"]))
    frame = pd.concat(parts, ignore_index=True)
    by_task = frame.groupby(["split", "predictor", "task"], sort=False)["mape"]
    frame["share"] = 100 * (by_task.shift() - frame["mape"]) / by_task.transform("first")
    return frame[ERROR_SOURCE_COLUMNS]


def _cumulated(steps: Mapping[str, Sequence[str]], table: Table) -> Iterable[tuple[str, list[str]]]:
    """Yield every step with the columns that rows of a group agree on."""
    columns: list[str] = []
    for name, added in steps.items():
        if missing := [column for column in added if column not in table.frame]:
            raise UserError(
                "columns of `error_sources` must be in the table",
                f"{missing[0]!r} of {name!r} is not",
                "edit `error_sources` in the conf of the dataset",
            )
        columns = [*dict.fromkeys([*columns, *added])]
        yield name, columns
    if config := table.select(tag=Tag.CONFIG):
        yield CONFIGURATION, [*dict.fromkeys([*columns, *config])]


def subtract_level(residual: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return residuals less the level of their group: the median of its n other rows, times n / (n + k).

    The median of a few rows is noise rather than a level. k, of `_SHRINKAGES`, is the one that leaves the smallest mean
    absolute residual. A row without others keeps its residual.
    Shapes: residual (n,), groups (n,) -> (n,).
    """
    codes = np.unique(groups, return_inverse=True)[1]
    others = np.bincount(codes)[codes] - 1
    level = np.where(others > 0, _medians_of_others(residual, codes), 0.0)
    candidates = [residual - level * others / np.maximum(others + k, 1) for k in _SHRINKAGES]
    return min([residual, *candidates], key=lambda remaining: float(np.abs(remaining).mean()))


def _medians_of_others(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for every value the median of the other ones of its code, (n,); its own value where there is no other."""
    order = np.lexsort((values, codes))
    ordered, of_code = values[order], codes[order]
    sizes = np.bincount(codes)
    starts, counts = (np.cumsum(sizes) - sizes)[of_code], sizes[of_code]
    rank = np.arange(len(values)) - starts
    # the middle of the other values, which are the ordered ones without that of this rank
    low, high = np.maximum(counts - 2, 0) // 2, (counts - 1) // 2
    last = counts - 1
    picked = (np.minimum(middle + (rank <= middle), last) for middle in (low, high))
    medians = np.empty(len(values))
    medians[order] = sum(ordered[starts + place] for place in picked) / 2
    return medians


def _summarize(tasks: pd.Series, residual: np.ndarray) -> pd.DataFrame:
    errors = pd.Series(100 * np.abs(np.expm1(residual))).groupby(tasks.astype(str).to_numpy(), sort=True)
    by_task = pd.DataFrame({"mape": errors.mean(), "medape": errors.median()})
    by_task.loc[AVERAGE] = by_task.mean()
    return by_task.rename_axis("task").reset_index()


def error_sources_section(evaluation: Evaluation, predictor: str) -> Section:
    """Return a table of one predictor for each ranked split, averaged over tasks."""
    frame = evaluation.tables["error_sources"]
    shown = frame[(frame["task"] == AVERAGE) & (frame["predictor"] == predictor)]
    tables = [
        TextTable(
            f"Sources of error on {split_label(split)}",
            f"{split_label(split)}: error of {predictor} when more is known",
            ("known", "MAPE", "MedAPE", "share of the error"),
            [
                (str(row["known"]), *(number(float(row[name])) for name in ("mape", "medape", "share")))
                for row in shown[shown["split"] == split].to_dict("records")
            ],
        )
        for split in evaluation.ranked_splits
        if (shown["split"] == split).any()
    ]
    return text_section("error_sources", "What limits accuracy", _TEXT, tables)
