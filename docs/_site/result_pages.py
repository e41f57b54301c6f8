"""Pages of results, made from results/leaderboard/<dataset>.csv; no value is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import published_values
from markdown_text import page, table

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.supplementary_tables import LEVEL_LABELS, whole_kinds
from perfcast.schema.metric_names import HIGH_IS_GOOD, PERCENT
from perfcast.splits import describe_split, split_label

COLUMNS = (
    *("dataset", "dataset_version", "split", "predictor", "preset", "seeds"),
    *("task", "metric", "value", "low", "high", "code_digest"),
)
"""Columns of a leaderboard: one row per split, predictor, preset, task and metric."""

NO_RESULTS = "No results yet. A run of the pipeline writes `results/leaderboard`, and this page shows them."

_MAIN = ("mape", "medape", "coverage", "width", "interval_score")
_ACRONYMS = {"mape": "MAPE", "medape": "MedAPE"}
_KEY = ["predictor", "preset", "seeds"]
_INTERVALS = (
    "Below each value is its 95 % bootstrap interval, clustered by the unit that the split holds out. "
    "Coverage is good near the level of the intervals, 90 % by default; lower is better for errors, widths "
    "(medians) and interval scores, which count width and misses."
)


def generate(folder: Path, conf: Path) -> dict[str, str]:
    """Return the pages by address: an index, and one page for every leaderboard of the folder."""
    boards = {path.stem: read(path) for path in sorted(folder.glob("*.csv"))}
    if not boards:
        return {"results/index.md": page("Results", NO_RESULTS)}
    listed = table(
        ["dataset", "splits", "predictors", "version of the data"],
        [
            [
                f"[`{name}`]({name}.md)",
                board["split"].nunique(),
                board.dropna(subset=["split"])["predictor"].nunique(),
                _join(board, "dataset_version"),
            ]
            for name, board in boards.items()
        ],
    )
    before = {"kinds": _describe_kinds, "choices": _describe_choices}
    index = page("Results", "One page per dataset, made from the files of a run.", listed, _INTERVALS, _METRICS)
    return {"results/index.md": index} | {
        f"results/{name}.md": _describe(
            name,
            board,
            published_values.sections(conf, name),
            [_section(folder / kind / f"{name}.csv", describe) for kind, describe in before.items()],
            _section(folder / "described" / f"{name}.csv", _describe_levels),
        )
        for name, board in boards.items()
    }


def _section(path: Path, describe: Callable[[pd.DataFrame], str]) -> str:
    """Return the section of a further table, "" where there is none."""
    return describe(pd.read_csv(path)) if path.is_file() else ""


def read(path: Path) -> pd.DataFrame:
    """Return a leaderboard. Raises: ValueError when a column is missing."""
    board = pd.read_csv(path, dtype={"seeds": str, "dataset_version": str, "code_digest": str})
    if missing := [name for name in COLUMNS if name not in board]:
        raise ValueError(f"{path.name} must have the columns {', '.join(COLUMNS)}; {', '.join(missing)} are missing")
    return board


def read_all(folder: Path) -> pd.DataFrame:
    """Return the rows of every leaderboard of a folder, none where it has no file."""
    boards = [read(path).dropna(subset=["split"]) for path in sorted(folder.glob("*.csv"))]
    return pd.concat(boards, ignore_index=True) if boards else pd.DataFrame(columns=list(COLUMNS))


_LEVELS = (
    "Test machines go through the tool's own path, with what users give at each level; the rest is filled in. "
    "The predictor is the champion. Facts: those of processors that were public at the cut of a forward split, or "
    "all, as on the day of a launch. Width is the median."
)
_METRICS = "See [protocol and metrics](../protocol.md) for the meaning of each metric."


def _describe_levels(frame: pd.DataFrame) -> str:
    """Return the section of machines that are predicted as users describe them."""
    rows = [
        [
            split_label(str(row.split)),
            row.facts,
            f"{row.level} {LEVEL_LABELS[int(str(row.level)) - 1]}",
            f"{row.n:,}",
            *(f"{value:.3g}" for value in (row.mape, row.medape, row.coverage, row.width)),
        ]
        for row in frame[frame["task"] == AVERAGE].itertuples()
    ]
    headings = ["split", "facts", "given", "rows", "MAPE in %", "MedAPE in %", "coverage in %", "width in %"]
    return f"## Machines as users describe them\n\n{_LEVELS}\n\n{table(headings, rows)}"


_KINDS = (
    "Accuracies and other shares have errors in points, 100 times the difference of the shares; losses and bits per "
    "byte in % of the measured value. Means are over the test rows. In brackets: 95 % bootstrap interval, clustered by "
    "run; with fewer than ten runs it is narrower than the truth. Signed: predicted minus measured. Width: the median "
    "of the intervals. [Training runs](../domains/scaling/scaling.md) and "
    "[interference](../domains/interference/interference.md) have more."
)


def _describe_kinds(frame: pd.DataFrame) -> str:
    """Return the section of errors of runs by kind of result, a table for each split."""
    blocks = ["## Errors by kind of result", _KINDS]
    headings = ["kind", "predictor", "mean error", "median", "signed", "R2", "coverage in %", "width", "rows", "runs"]
    for split, part in whole_kinds(frame).groupby("split", sort=False):
        ordered = part.sort_values(["kind", "mean"], kind="stable")
        rows = [
            [
                f"{row.kind} in {row.unit}",
                f"`{row.predictor}`",
                f"{row.mean_:.2f}" + (f" ({row.low:.2f} to {row.high:.2f})" if pd.notna(row.low) else ""),
                *(f"{value:.2f}" for value in (row.median_, row.signed)),
                f"{row.r2:.2f}" if pd.notna(row.r2) else "-",
                *(f"{value:.3g}" if pd.notna(value) else "-" for value in (row.coverage, row.width)),
                f"{row.rows:,}",
                row.runs,
            ]
            for row in ordered.rename(columns={"mean": "mean_", "median": "median_"}).itertuples()
        ]
        blocks += [f"### {split_label(str(split))[0].upper()}{split_label(str(split))[1:]}", table(headings, rows)]
    return "\n\n".join(blocks)


_CHOICES = (
    "Which layout and load to run: the options of a question are test rows of one model, GPU and length of prompts and "
    "answers. A predictor chooses the option with the highest predicted throughput per GPU whose predicted time per "
    "token is within the limit. The choice is good when its measured throughput is within 10 % of the best one, and "
    "its time within 10 % of the limit. Loss: the median of the throughput that is given up."
)


def _describe_choices(frame: pd.DataFrame) -> str:
    """Return the section of chosen layouts, a table for each split with the shares of all limits."""
    blocks = ["## Layouts chosen by predictions", _CHOICES]
    for split, part in frame.groupby("split", sort=False):
        limits = sorted(part["limit"].unique())
        shares = part.pivot(index="predictor", columns="limit", values="share")
        losses = part.pivot(index="predictor", columns="limit", values="median_loss")
        ranked = shares.mean(axis=1).sort_values(ascending=False, kind="stable").index
        rows = [
            [f"`{name}`", *(f"{shares.at[name, limit]:.0f} ({losses.at[name, limit]:.0f})" for limit in limits)]
            for name in ranked
        ]
        asked = ", ".join(
            f"{int(part.loc[part['limit'] == limit, 'questions'].iloc[0])} within {limit:g} ms" for limit in limits
        )
        headings = ["predictor", *(f"good (loss) in %, {limit:g} ms" for limit in limits)]
        blocks += [f"### {split_label(str(split))[0].upper()}{split_label(str(split))[1:]}", f"Questions: {asked}."]
        blocks += [table(headings, rows)]
    return "\n\n".join(blocks)


def _describe(name: str, board: pd.DataFrame, published: Mapping[str, str], before: Sequence[str], after: str) -> str:
    digests = board["code_digest"].dropna().unique()
    digest = f"`{_join(board, 'code_digest')}`" if len(digests) < 4 else "one per predictor, in the file of results"
    facts = f"Version of the data: `{_join(board, 'dataset_version')}`. Digest of the code: {digest}."
    names = dict.fromkeys(board["split"].dropna())
    splits = [block for split in names for block in _split(split, board[board["split"] == split], published)]
    floor = _describe_floor(board[board["split"].isna()])
    return page(
        name,
        f"Results of every predictor on the dataset `{name}`.",
        facts,
        _INTERVALS,
        floor,
        *before,
        *splits,
        after,
    )


def _describe_floor(rows: pd.DataFrame) -> str:
    """Return the error that remains when a machine is known exactly, where machines were measured repeatedly."""
    values = rows[rows["metric"] == "mape"].dropna(subset=["value"])
    if values.empty:
        return ""
    listed = ", ".join(f"{row.task} {row.value:.2g} %" for row in values.itertuples())
    return f"Repeated measurements of equal machines differ too. MAPE of the noise floor: {listed}."


def _split(split: str, rows: pd.DataFrame, published: Mapping[str, str]) -> Iterator[str]:
    description = describe_split(split)
    yield f"## {split_label(split)[0].upper()}{split_label(split)[1:]}: `{split}`"
    yield f"Test rows: {description}." if description else ""
    tasks = list(dict.fromkeys(rows["task"]))
    yield by_predictor(rows[rows["task"] == (AVERAGE if AVERAGE in tasks else tasks[0])])
    yield published.get(split, "")
    if len(tasks) > 1:
        indented = by_task(rows).replace("\n", "\n    ")
        yield f'??? note "MAPE of every task"\n\n    {indented}'


def by_predictor(rows: pd.DataFrame) -> str:
    """Return the main metrics of one task and split, the smallest error first."""
    metrics = [metric for metric in (*_MAIN, *HIGH_IS_GOOD) if metric in set(rows["metric"])]
    if set(_MAIN) & set(metrics):
        metrics = [metric for metric in metrics if metric in _MAIN]
    if not metrics:
        return NO_RESULTS
    cells: dict[Any, dict[Any, Any]] = {
        key: {row.metric: row for row in group.itertuples()}
        for key, group in rows.groupby(_KEY, sort=False, dropna=False)
    }
    sign = -1.0 if metrics[0] in HIGH_IS_GOOD else 1.0

    def rank(key: Any) -> float:
        row = cells[key].get(metrics[0])
        return float("inf") if row is None else sign * float(row.value)

    ranked = sorted(cells, key=rank)
    lines = [[f"`{key[0]}`", *key[1:], *(_value(cells[key].get(metric)) for metric in metrics)] for key in ranked]
    return table(["predictor", "preset", "seeds", *map(_heading, metrics)], lines)


def by_task(rows: pd.DataFrame) -> str:
    """Return the MAPE of every predictor, a column per task."""
    chosen = rows[(rows["metric"] == "mape") & (rows["task"] != AVERAGE)]
    tasks = list(dict.fromkeys(chosen["task"]))
    lines = []
    for key, group in chosen.groupby(_KEY, sort=False, dropna=False):
        values = {row.task: row for row in group.itertuples()}
        lines.append([f"`{key[0]}`", key[1], *(_value(values.get(task)) for task in tasks)])
    return table(["predictor", "preset", *tasks], lines)


def _heading(metric: str) -> str:
    name = _ACRONYMS.get(metric, metric.replace("_", " "))
    return f"{name} in %" if metric in PERCENT else name


def _value(row: Any) -> str:
    if row is None or pd.isna(row.value):
        return "not run"
    percent = "{:,.0f}" if row.value >= 1000 else "{:.3g}"
    form = "{:.1f}" if row.metric == "coverage" else percent if row.metric in PERCENT else "{:.3f}"
    interval = "" if pd.isna(row.low) else f"<br><small>{form.format(row.low)} to {form.format(row.high)}</small>"
    return form.format(row.value) + interval


def _join(board: pd.DataFrame, column: str) -> str:
    return ", ".join(dict.fromkeys(board[column].dropna().astype(str))) or "unknown"
