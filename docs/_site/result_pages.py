"""Pages of results, made from results/leaderboard/<dataset>.csv; no value is typed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import published_values
from leaderboard import COLUMNS
from markdown.extensions.toc import slugify
from markdown_text import page, table, whole_kinds

from perfcast.config.conf_files import known, read_conf, read_yaml
from perfcast.config.predictor_conf import read_predictor
from perfcast.evaluation import AVERAGE
from perfcast.evaluation.supplementary_tables import LEVEL_LABELS
from perfcast.predictors import baselines
from perfcast.schema.metric_names import HIGH_IS_GOOD, PERCENT
from perfcast.splits import describe_split, is_compared, split_label
from perfcast.utils.io import read_object

NO_RESULTS = "No results yet. A run of the pipeline writes `results/leaderboard`, and this page shows them."

_MAIN = ("mape", "medape", "coverage", "width", "interval_score")
_ACRONYMS = {"mape": "MAPE", "medape": "MedAPE"}
_KEY = ["predictor", "preset", "seeds"]
_CHAMPION = (
    "The champion answers `perfcast predict`. {name}It is the predictor with the smallest error on validation rows, "
    "which are inside the [training part](../protocol.md#choices-inside-training) of each split, by the geometric mean "
    "over the splits. Test rows choose nothing: another predictor may be first in a table below."
)
_INTERVALS = (
    "Below each value is its 95 % bootstrap interval, clustered by the unit that the split holds out. "
    "Coverage is good near the level of the intervals, 90 % by default; lower is better for errors, widths "
    "(medians) and interval scores, which count width and misses."
)


def generate(folder: Path, conf: Path) -> dict[str, str]:
    """Return the pages by address: an index, and one page for every leaderboard of the folder."""
    first = read_yaml(conf / "leaderboard.yaml")["headline"]["dataset"]
    paths = sorted(folder.glob("*.csv"), key=lambda path: (path.stem != first, path.stem))
    boards = {path.stem: _compared_first(read(path)) for path in paths}
    if not boards:
        return {"results/index.md": page("Results", NO_RESULTS)}
    titles = {name: str(read_conf(conf, "dataset", name)["title"]) for name in known(conf, "dataset")}
    targets = {name: read_predictor(conf, name).target for name in known(conf, "predictor")}
    simple = {name for name, target in targets.items() if target.startswith(f"{baselines.__name__}.")}
    listed = [_by_question(name, titles.get(name, name), board, simple) for name, board in boards.items()]
    before = {"kinds": _describe_kinds, "choices": _describe_choices}
    index = page("Results", _QUESTIONS, *listed)
    return {"results/index.md": index} | {
        f"results/{name}.md": _describe(
            name,
            board,
            published_values.sections(conf, name),
            [_section(folder / kind / f"{name}.csv", describe) for kind, describe in before.items()],
            _section(folder / "described" / f"{name}.csv", _describe_levels),
            champion=_describe_champion(folder.parent / "headline" / name),
        )
        for name, board in boards.items()
    }


def _compared_first(board: pd.DataFrame) -> pd.DataFrame:
    """Return a leaderboard with the splits of a single predictor last."""
    alone = board.groupby("split")["predictor"].transform("nunique") == 1
    return board.iloc[alone.to_numpy().argsort(kind="stable")]


_QUESTIONS = (
    "How far off is a prediction? Errors are means over the test rows, averaged over tasks. Below each is its 95 % "
    "bootstrap interval. *Best* has the smallest test error, which no predictor is chosen by: each dataset's page says "
    "how the champion is chosen. *Baseline* is the best of the simple predictors, such as `nearest`."
)


def _by_question(name: str, title: str, board: pd.DataFrame, simple: Collection[str]) -> str:
    """Return a section of the index: best predictor, its error and that of the best baseline for every split."""
    metric = "mae" if "mae" in set(board["metric"]) else "mape"
    errors = board[(board["metric"] == metric) & (board["task"] == AVERAGE)].dropna(subset=["split", "value"])
    rows = []
    for split, part in errors[errors["split"].map(is_compared)].groupby("split", sort=False):
        ranked = list(part.sort_values("value", kind="stable").itertuples())
        baseline = next((row for row in ranked if row.predictor in simple), None)
        question = describe_split(str(split)) or split_label(str(split))
        alone = "" if len(ranked) > 1 else ", the only one here"
        rows.append(
            [
                f"[{question}]({name}.md#{slugify(_heading_of(str(split)).replace('`', ''), '-')})",
                f"`{ranked[0].predictor}`{alone}" if not _ties(part) else "no ranking",
                _error(ranked[0]),
                "-" if baseline is None else f"`{baseline.predictor}`\N{NO-BREAK SPACE}{_error(baseline)}",
            ]
        )
    listed = table(["test rows", "best", "error", "baseline"], rows)
    return f"## {title}\n\n[Every predictor on `{name}`]({name}.md)\n\n{listed}"


def _error(row: Any) -> str:
    """Return an error with its unit and interval."""
    unit = "points" if row.metric == "mae" else "%"
    interval = "" if pd.isna(row.low) else f"<br><small>{row.low:.3g} to {row.high:.3g}</small>"
    return f"{row.value:.3g}\N{NO-BREAK SPACE}{unit}{interval}"


def _ties(rows: pd.DataFrame) -> str:
    """Return what stands in place of a ranking where most predictors of a split have the same error, else ""."""
    values = rows.loc[(rows["metric"] == "mape") & (rows["task"] == AVERAGE), "value"].round(2)
    same = int(values.value_counts().max()) if len(values) else 0
    if same < 3 or 2 * same <= len(values):
        return ""
    return (
        f"{same} of {len(values)} predictors have the same error, {values.mode()[0]:.2f} %: training and test have too "
        "few machines to learn from. The table shows that the chain works, not a ranking."
    )


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
    return pd.concat(boards, ignore_index=True) if boards else pd.DataFrame(columns=COLUMNS)


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


def _describe_champion(headlines: Path) -> str:
    """Return how the champion is chosen, and its name where results/headline has one."""
    names = {str(read_object(path, "champion")["champion"]) for path in headlines.glob("*.json")}
    return _CHAMPION.format(name="".join(f"On this dataset it is `{name}`. " for name in sorted(names)))


def _describe(
    name: str, board: pd.DataFrame, published: Mapping[str, str], before: Sequence[str], *after: str, champion: str
) -> str:
    digests = board["code_digest"].dropna().unique()
    digest = f"`{_join(board, 'code_digest')}`" if len(digests) < 4 else "one per predictor, in the file of results"
    facts = f"Version of the data: `{_join(board, 'dataset_version')}`. Digest of the code: {digest}."
    names = dict.fromkeys(board["split"].dropna())
    splits = [block for split in names for block in _split(split, board[board["split"] == split], published)]
    floor = _describe_floor(board[board["split"].isna()])
    return page(
        name,
        f"Results of every predictor on the dataset `{name}`.",
        champion,
        facts,
        _INTERVALS,
        _METRICS,
        floor,
        *before,
        *splits,
        *after,
    )


def _describe_floor(rows: pd.DataFrame) -> str:
    """Return the error that remains when a machine is known exactly, where machines were measured repeatedly."""
    values = rows[rows["metric"] == "mape"].dropna(subset=["value"])
    if values.empty:
        return ""
    listed = ", ".join(f"{row.task} {row.value:.2g} %" for row in values.itertuples())
    return f"Repeated measurements of equal machines differ too. MAPE of the noise floor: {listed}."


def _heading_of(split: str) -> str:
    return f"{split_label(split)[0].upper()}{split_label(split)[1:]}: `{split}`"


def _split(split: str, rows: pd.DataFrame, published: Mapping[str, str]) -> Iterator[str]:
    description = describe_split(split)
    yield f"## {_heading_of(split)}"
    yield f"Test rows: {description}." if description else ""
    tasks = list(dict.fromkeys(rows["task"]))
    yield _ties(rows)
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
