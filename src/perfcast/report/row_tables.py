"""Tables of the report from single predictions: largest errors with their probable reason, and releases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.run_predictions import is_covered
from perfcast.report.report_context import NAME, WHEN, Rows
from perfcast.report.text_tables import EMPTY, Cell, Line, TextTable, count, number, signed
from perfcast.splits import describe_split, scenario_label, split_label
from perfcast.uncertainty.in_domain import AHEAD, RESULTS

_SHOWN = 6
_LOW = 0.1
_GROUP_TEXTS = {RESULTS: "its few results", AHEAD: "the time since the end of the data"}
_MIN_ROWS = 5
"""Results of a family in a task below which its error is not shown."""
_ROUND = (5, 10, 20, 30, 40, 50, 75, 100, 200)


def largest_errors(evaluation: Evaluation, rows: Rows, predictor: str) -> list[TextTable]:
    """Return, by split, the machines with the largest errors of one predictor, each machine once.

    Errors are compared by their logarithm, so that half and double are equally wrong. Below the row of a machine stands
    how many of its further rows have at least half of this error.
    """
    several = evaluation.tables["points"]["target"].nunique() > 1
    tables: list[TextTable] = []
    for split in evaluation.ranked_splits:
        points = evaluation.tables["points"]
        mine = points[(points["split"] == split) & (points["predictor"] == predictor)].copy()
        if mine.empty:
            continue
        mine["log"] = np.log(mine["predicted"].astype(float) / mine["measured"].astype(float))
        mine["machine"] = rows.names.loc[mine["row"], NAME].to_numpy()
        mine["rank"] = mine["in_domain_score"].rank(pct=True)
        size = mine["log"].abs()
        by_machine = (size >= 0.5 * size.groupby(mine["machine"]).transform("max")).groupby(mine["machine"])
        mine["similar"] = by_machine.transform("sum") - 1
        worst = mine.loc[size.sort_values(ascending=False, kind="stable").index].drop_duplicates("machine")
        description = f": {describe_split(split)}" if describe_split(split) else ""
        tables.append(
            TextTable(
                f"Largest errors on {split_label(split)}",
                f"{split_label(split)}: largest errors of {evaluation.label(predictor)}, with "
                f"{100 * evaluation.level:g} % prediction intervals; predictions are not measured results",
                [
                    *("machine", "task", "measured", Cell("predicted", ("interval",)), "error"),
                    *("in-domain score", "probable reason"),
                ],
                [_error_line(point, several=several) for point in worst.head(_SHOWN).to_dict("records")],
                words=[1, 6],
                fold=f"{split_label(split)} ({split}){description}",
                open=not tables,
                style="large-errors",
            )
        )
    return tables


def _error_line(point: Mapping[Hashable, Any], *, several: bool) -> Line:
    log, half, predicted = float(point["log"]), float(point["half_width"]), float(point["predicted"])
    similar = int(point["similar"])
    more = f", and {count(similar, 'similar result')}" if similar else ""
    interval: tuple[str, ...] = ()
    if not np.isnan(half):
        low, high = (_score(predicted * np.exp(way * half)) for way in (-1, 1))
        interval = f"{low} to {high}", "inside" if abs(log) <= half else "outside"
    return [
        Cell(point["machine"], (f"{point['row']}{more}",)),
        Cell(point["task"], (point["target"],) if several else ()),
        _score(float(point["measured"])),
        Cell(_score(predicted), interval),
        f"{signed(100 * np.expm1(log), 0)}\u00a0%",
        number(float(point["in_domain_score"])),
        _reason(point),
    ]


def _score(value: float) -> str:
    """Return a score with three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _reason(point: Mapping[Hashable, Any]) -> str:
    """Return the probable reason of one error in words."""
    group, rank = point["least_similar_group"], point["rank"]
    if rank <= _LOW and group:
        others = min(int(100 * (1 - rank)), 99)
        cause = _GROUP_TEXTS.get(group, f"its {group}")
        return f"less similar to the training data than {others} % of this split, above all by {cause}"
    if abs(point["log"]) <= point["half_width"]:
        return "inside its interval: errors of this size are expected for such machines"
    return "no reason found in the data"


def release_tables(evaluation: Evaluation, rows: Rows, predictor: str) -> list[TextTable]:
    """Return, by forward split, errors of families by task, since biases of tasks can have opposite signs.

    Families without training rows come first, then those with; each by the largest bias in a task. A task with too few
    results of a family has a dash. Empty without forward splits.
    """
    families = [name for name in evaluation.lineage_slices if name in rows.slices][:1]
    tables = []
    for split in evaluation.ranked_splits if families else ():
        points = evaluation.tables["points"]
        points = points[(points["split"] == split) & (points["predictor"] == predictor)]
        if points.empty or not rows.is_forward(split):
            continue
        errors = _errors_by_family(evaluation, rows, points, families[0])
        if errors.empty:
            continue
        ends = np.sort(errors[["low", "high"]].abs().max(axis=1))
        covered = min(ends[int(np.ceil(0.9 * (len(ends) - 1)))], _ROUND[-1])
        limit = next(end for end in _ROUND if end >= covered)
        worst = errors["mean_error"].abs().groupby(errors["family"]).max()
        order = sorted(worst.index, key=lambda family: (-worst[family], family))
        seen = errors.groupby("family")["seen"].min()
        run = evaluation.value(split, predictor)
        seeds = count(0 if run is None else int(run["seeds"]), "seed")
        caption = (
            f"{split_label(split)} ({split}, {seeds}): mean error in %, strips from −{limit} to +{limit} %; “trained” "
            "counts training results of the family, “first” is the month of its first test result"
        )
        name = scenario_label(split).capitalize() or split_label(split).capitalize()
        trained = [family for family in order if seen[family]]
        new = [family for family in order if not seen[family]]
        known = f"{name}: {len(trained)} famil{'y' if len(trained) == 1 else 'ies'} with training results"
        for shown, fold in ((new, f"{name}: new families"), (trained, known)):
            if shown:
                lines = [_family_line(evaluation, errors[errors["family"] == family], limit) for family in shown]
                headings = ["family", "first", "trained", *evaluation.tasks]
                region = f"Families on {split_label(split)}"
                is_open = shown is new or not new
                notes = [] if new else ["No family of this split is new: each has training results."]
                table = TextTable(region, caption, headings, lines, fold=fold, open=is_open, notes=notes)
                tables.append(replace(table, style="sortable releases"))
    return tables


def _errors_by_family(evaluation: Evaluation, rows: Rows, points: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a row per family and task with enough results: mean, spread, coverage, and facts of the family.

    Units: mean_error (positive: predicted too high), low, median and high in % of the measured score, coverage in %.
    """
    counts = rows.count_training_rows(str(points["split"].iloc[0]), rows.slices[name])
    vendors = evaluation.vendor_slices[:1]
    joined = points.assign(
        family=rows.slices.loc[points["row"], name].to_numpy(),
        vendor=rows.slices.loc[points["row"], vendors[0]].to_numpy() if vendors else "",
        when=rows.names.loc[points["row"], WHEN].to_numpy(),
        seen=counts.reindex(points["row"]).to_numpy(),
        error=100 * (points["predicted"].astype(float) / points["measured"].astype(float) - 1),
        covered=is_covered(points),
    )
    of_family = joined.groupby("family")
    facts = pd.DataFrame({"first": of_family["when"].min(), "seen": of_family["seen"].min()})
    facts["vendor"] = [next(iter(vendor.mode()), "") for _, vendor in of_family["vendor"]]
    groups = joined.groupby(["family", "task"], sort=True)
    errors = groups.agg(mean_error=("error", "mean"), coverage=("covered", "mean"), rows=("row", "nunique"))
    for column, quantile in (("low", 0.1), ("median", 0.5), ("high", 0.9)):
        errors[column] = groups["error"].quantile(quantile)
    return errors[errors["rows"] >= _MIN_ROWS].reset_index().join(facts, on="family")


def _family_line(evaluation: Evaluation, errors: pd.DataFrame, limit: int) -> Line:
    first = errors.iloc[0]
    by_task = {row["task"]: row for row in errors.to_dict("records")}
    month, seen = f"{first['first']:%Y-%m}", int(first["seen"])
    return [
        Cell(first["family"], (first["vendor"],)),
        Cell(month.replace("-", "‑"), key=int(month.replace("-", ""))),
        Cell(f"{seen:,}" if seen else "new", key=seen, mark="" if seen else "best"),
        *(_bias(by_task[task], limit) if task in by_task else EMPTY for task in evaluation.tasks),
    ]


def _bias(row: Mapping[Hashable, Any], limit: int) -> Cell:
    """Return the mean error of a family in a task, with a strip of its middle 80 % and the median."""
    low, median, high = (round(100 * max(-1.0, min(1.0, row[name] / limit)), 1) for name in ("low", "median", "high"))
    share = "" if np.isnan(row["coverage"]) else f"{100 * row['coverage']:.0f} % of "
    text = f"{signed(row['mean_error'], 1)}\u00a0%"
    return Cell(text, (f"{share}{row['rows']:,}",), row["mean_error"], bar=(low, median, high))
