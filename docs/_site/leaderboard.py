"""Collect the metrics of finished runs in one CSV file per dataset, and show them in README.md."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.evaluation import AVERAGE, read_evaluation
from perfcast.evaluation.evaluate_runs import TABLES
from perfcast.experiment.ledger import FOLDER, SCORES, read_entries
from perfcast.schema.metric_names import POINTS
from perfcast.schema.table_files import content_digest, read_csv, read_parquet, read_table
from perfcast.splits import split_label, split_version
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, read_object, write_text

PROJECT = Path(__file__).parents[2]
COLUMNS = [
    "dataset",
    "dataset_version",
    "split",
    "split_version",
    "predictor",
    "preset",
    "backtests",
    "seeds",
    "task",
    "metric",
    "value",
    "low",
    "high",
    "rows",
    "code_digest",
]
_FURTHER = ("described",)
"""Tables of the core that have a folder each. So have those of domains, but for tables of predictions."""
NOISE_FLOOR = "noise floor"
"""Name of the rows of repeated measurements: the error that remains when a machine is known exactly."""
_RUN = ["split", "predictor", "preset"]
_METRICS = (*POINTS, "mape", "medape", "p90", "coverage", "width", "interval_score")
_NUMBERS = ("split_version", "backtests", "value", "low", "high", "rows")
_COUNTS = ("split_version", "backtests", "rows")
_DIGITS = 12
_MAX_TASKS = 25
"""Tasks up to which a file has the rows of each; of more it has their average."""


def collect_leaderboard(results: Path, dataset: str) -> pd.DataFrame:
    """Return the metrics of one dataset from a folder of results.

    Returns: `COLUMNS`, one row per (split, predictor, task, metric); of more than `_MAX_TASKS` tasks the average alone.
    `low` to `high` is the 95 % bootstrap interval.
    Units: % of the measured value.
    Raises: UserError when the folder has no evaluation of the dataset.
    """
    evaluation = read_evaluation(results / "evaluation" / dataset)
    metrics = evaluation.metrics[evaluation.metrics["metric"].isin(_METRICS)].dropna(subset=["value"])
    noise = evaluation.tables["noise"]
    if len(evaluation.tasks) > _MAX_TASKS:
        metrics, noise = (frame[frame["task"] == AVERAGE] for frame in (metrics, noise))
    runs = [
        {"split": split, "predictor": predictor, **_describe_run(results / "runs" / dataset / split / predictor)}
        for split, predictor in metrics[["split", "predictor"]].drop_duplicates().itertuples(index=False)
    ]
    frame = metrics.drop(columns="seeds").merge(pd.DataFrame(runs), on=["split", "predictor"])
    frame["split_version"] = frame["split"].map(split_version)  # the evaluation refuses runs of any other version
    floor = noise.melt("task", ["mape_floor", "medape_floor"], "metric").assign(predictor=NOISE_FLOOR)
    floor["metric"] = floor["metric"].str.removesuffix("_floor")
    frame = pd.concat([frame, floor], ignore_index=True)
    version = content_digest(read_table(results / "standard" / f"{dataset}.parquet"))[:_DIGITS]
    return frame.assign(dataset=dataset, dataset_version=version).reindex(columns=COLUMNS)


def _describe_run(folder: Path) -> dict[str, object]:
    """Return preset, number of backtests, seeds and digest of the code of one run."""
    settings = read_yaml(folder / "config.yaml")
    backtests = read_parquet(folder / "backtest.parquet")  # without columns where a split has no backtest
    return {
        "preset": settings["preset"],
        "backtests": int(backtests.groupby("fold")["backtest"].nunique().max()) if len(backtests) else 0,
        "seeds": " ".join(map(str, settings["seeds"])),
        "code_digest": read_object(folder / "record.json", "tags")["tags"]["code_digest"],
    }


def read_leaderboard(path: Path) -> pd.DataFrame:
    """Return a leaderboard written by `update_leaderboard`. Raises: UserError when the file is missing or damaged."""
    text = dict.fromkeys(("dataset", "dataset_version", "seeds", "code_digest", *_RUN, "task", "metric"), "str")
    return read_csv(path, dtype=text, keep_default_na=False, na_values={name: [""] for name in _NUMBERS})


def update_leaderboard(path: Path, frame: pd.DataFrame) -> int:
    """Put the runs of `frame` into a CSV; runs of the same split, predictor and preset and no more seeds are replaced.

    Runs of another version of a split than today's are removed, because they test other rows.
    Returns: the number of runs in the file. Raises: UserError when the file has another dataset version.
    """
    frame = frame.fillna(dict.fromkeys((*_RUN, "seeds", "code_digest"), ""))
    if path.is_file():
        earlier = read_leaderboard(path)
        versions = set(earlier["dataset_version"]) | set(frame["dataset_version"])
        if len(versions) > 1:
            raise UserError(
                "a leaderboard must be of one version of the dataset",
                f"{path} has {earlier['dataset_version'].iloc[0]}, the results {frame['dataset_version'].iloc[0]}",
                "delete the file to begin a new leaderboard",
            )
        earlier = earlier[earlier["split_version"].fillna(1) == earlier["split"].map(split_version)]
        seeds = earlier.groupby(_RUN)["seeds"].first().str.count(" ")
        more = seeds.reindex(pd.MultiIndex.from_frame(frame[_RUN])).fillna(0).to_numpy()
        frame = frame[frame["seeds"].str.count(" ") >= more]
        replaced = pd.MultiIndex.from_frame(frame[_RUN].drop_duplicates())
        frame = pd.concat([earlier[~pd.MultiIndex.from_frame(earlier[_RUN]).isin(replaced)], frame])
    frame = frame.sort_values([*_RUN, "task", "metric"], kind="stable").astype(dict.fromkeys(_COUNTS, "Int64"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        frame[COLUMNS].to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")
    return len(frame[_RUN].drop_duplicates())


def update_tables(folder: Path, results: Path, dataset: str) -> None:
    """Write further tables of a run's evaluation to a folder each of `folder`, where the run has them."""
    evaluation = read_evaluation(results / "evaluation" / dataset)
    for name, frame in evaluation.tables.items():
        if name in TABLES and name not in _FURTHER:
            continue
        if frame.empty or "predicted" in frame:
            continue
        path = folder / name / f"{dataset}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            frame.to_csv(temporary, index=False, float_format="%.4g", lineterminator="\n")


def read_headline(leaderboards: Path, spec: Mapping[str, Any]) -> pd.DataFrame:
    """Return the leaderboard of a headline table, with a further column's rows under its heading as the split.

    Args: `spec` as in conf/leaderboard.yaml; `further` names the predictor that stands in the row of another, `peers`
    the file of scored submissions.
    """
    boards = [read_leaderboard(leaderboards / f"{spec['dataset']}.csv")]
    if "peers" in spec:
        peers = read_leaderboard(leaderboards / spec["peers"])
        boards.append(peers[~peers["predictor"].isin(boards[0]["predictor"])].assign(preset=spec["preset"]))
    for heading, other in spec.get("further", {}).items():
        board = read_leaderboard(leaderboards / f"{other['dataset']}.csv")
        board = board[(board["split"] == other["split"]) & board["predictor"].isin(list(other["predictors"]))]
        boards.append(board.assign(split=heading, predictor=board["predictor"].map(other["predictors"])))
    return pd.concat(boards, ignore_index=True)


def headline_table(frame: pd.DataFrame, spec: Mapping[str, Any]) -> str:
    """Return a Markdown table of the mean error, averaged over tasks: predictors by splits, the best in bold.

    Args: `spec` has `preset`, `splits` and `predictors`, a mapping of predictor to the words in the table.
    """
    average = frame[(frame["task"] == AVERAGE) & (frame["metric"] == "mape") & frame["preset"].isin([spec["preset"]])]
    cells = {(row.predictor, row.split): row for row in average.itertuples()}
    best = average[average["predictor"].isin(spec["predictors"])].groupby("split")["value"].min().to_dict()
    lines = [_row(["", *map(split_label, spec["splits"])]), _row(["---", *["---:"] * len(spec["splits"])])]
    for name, words in spec["predictors"].items():
        row = [cells.get((name, split)) for split in spec["splits"]]
        lines.append(_row([words, *["-" if cell is None else _cell(cell, best[cell.split]) for cell in row]]))
    shown = average[average["predictor"].isin(spec["predictors"]) & average["split"].isin(spec["splits"])]
    caption = f"Preset `{spec['preset']}`, {_seeds(shown)}. In brackets: 95 % bootstrap interval."
    return "\n".join([*lines, "", caption])


def _seeds(shown: pd.DataFrame) -> str:
    """Return the seeds of a table in words; where columns differ, each number of seeds with its columns."""
    most = shown.groupby("split", sort=False)["seeds"].agg(lambda texts: max(texts, key=len))
    parts = []
    for seeds, splits in most.groupby(most, sort=False).groups.items():
        numbers = seeds.split()
        label = f"seed{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        parts.append(label if most.nunique() == 1 else f"{label} ({'; '.join(map(split_label, splits))})")
    return ", ".join(parts)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(row: Any, best: float) -> str:
    text = f"{row.value:.1f} %"
    return f"{f'**{text}**' if row.value == best else text} ({row.low:.1f} to {row.high:.1f})"


def replace_block(text: str, name: str, content: str) -> str:
    """Return a document with the lines between `<!-- NAME -->` and `<!-- /NAME -->` replaced.

    Raises: UserError when the document lacks the two marks.
    """
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
    if not pattern.search(text):
        raise UserError(f"the document must have a block {name!r}", "it has none", f"add <!-- {name} --> and its end")
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def render_readme(project: Path, leaderboards: Path) -> str:
    """Return README.md with the headline table of the leaderboard and the outputs that conf/leaderboard.yaml names."""
    conf = read_yaml(project / "conf" / "leaderboard.yaml")
    headline = conf["headline"]
    shown = headline_table(read_headline(leaderboards, headline), headline)
    text = replace_block((project / "README.md").read_text(encoding="utf-8"), "headline", f"\n{shown}\n")
    text = replace_block(text, "ledger", ledger_line(project / "results" / FOLDER))
    for name, path in conf["outputs"].items():
        output = (project / path).read_text(encoding="utf-8").rstrip()
        text = replace_block(text, name, f"```text\n{output}\n```")
    return text


def ledger_line(folder: Path) -> str:
    """Return the errors of the first entry of the ledger of forecasts in words."""
    entry = read_entries(folder).iloc[0]
    scores = read_csv(folder / SCORES, keep_default_na=False)
    whole = scores[(scores["entry"] == entry["entry"]) & (scores["task"] == "") & (scores["month"] == "")]
    by_known = whole.set_index("known")
    new, known = by_known.loc[False], by_known.loc[True]
    return (
        f"A champion of results to {entry['until']}, made afterwards, forecasts "
        f"{int(new['results'] + known['results']):,} later results: "
        f"{new['mape']:.1f} % off for new CPU models, {known['mape']:.1f} % for known ones. "
        "The [ledger](docs/studies/ledger.md) has each by SHA-256, and those of unmeasured processors."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Update the CSV files of finished runs, and README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, nargs="+", default=[Path("results")], help="folders of runs")
    parser.add_argument("--out", type=Path, default=Path("results/leaderboard"), help="folder of the CSV files")
    options = parser.parse_args(arguments)
    for results in options.results:
        for folder in sorted((results / "evaluation").glob("*/")):
            path = options.out / f"{folder.name}.csv"
            runs = update_leaderboard(path, collect_leaderboard(results, folder.name))
            update_tables(options.out, results, folder.name)
            print(f"{path}: {runs} runs")
    write_text(PROJECT / "README.md", render_readme(PROJECT, options.out))


if __name__ == "__main__":
    main()
