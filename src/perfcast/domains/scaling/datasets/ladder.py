"""OLMo's ladder: final losses, bits per byte and accuracies of each run, and of the two models that it predicts.

Facts of the files:
- A run is a size, a multiple of 20 tokens per parameter and a repetition. The five runs of multiple 1 were repeated.
- A file has one row per evaluation. Only the last one ends the learning-rate schedule; a checkpoint in the middle of a
  long run is no shorter run. All earlier checkpoints are merged into the last one.
- Parameters exclude embeddings. Those of 3B are in no file: they follow from the tokens of its runs, within 0.01 %.
- The files of the targets lack the step (7B) or the tokens (13B). The 7B file holds one row, that of 13B its last rows.

Source: Bhagia et al., 2024, arXiv 2412.04403; parameters in scripts/scaling/final.json of the same repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import (
    Rejection,
    build_rejected_frame,
    join_rejections,
    read_rows,
    require_rows,
    split_rejections,
)
from perfcast.domains import read_columns
from perfcast.domains.scaling.datasets import scaling_columns
from perfcast.domains.scaling.sources import olmo_ladder as source
from perfcast.schema.table import build_table
from perfcast.sources.packed import Packed, read_records

SOURCE = "olmo_ladder"
PARAMS = {
    "190M": 190_354_176,
    "370M": 371_262_464,
    "760M": 758_220_288,
    "1B": 1_279_395_840,
    "3B": 3_169_537_280,
    "7B": 6_887_575_552,
    "13B": 13_202_396_160,
}
"""Parameters by model size, without embeddings."""
TOKENS_PER_PARAM = 20
"""Tokens per parameter of a multiplier of 1."""
CHANCE = {
    "mmlu": 0.25,
    "hellaswag": 0.25,
    "arc_challenge": 0.25,
    "arc_easy": 0.25,
    "openbookqa": 0.25,
    "piqa": 0.5,
    "csqa": 0.2,
    "socialiqa": 1 / 3,
}
"""Share of correct answers of a random choice: one over the number of choices."""
MULTIPLIERS_PUBLISHED = ("1", "2", "5", "10")
SUBSETS_PUBLISHED = {
    "190M": "train",
    "370M": "train",
    "760M": "train",
    "1B": "validation",
}
"""Subsets of the authors' training runs; their largest size validates, because the test sizes are larger still."""


def _list_tasks() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the kind of each task, and the columns whose mean is its result."""
    tasks: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, column in source.LOSSES.items():
        tasks[f"{name}_loss"] = (scaling_columns.LOSS, (column,))
    for name, parts in source.QUESTIONS.items():
        tasks[f"{name}_bpb"] = (scaling_columns.BITS, tuple(map(source.bpb_column, parts)))
    for name, parts in source.QUESTIONS.items():
        tasks[f"{name}_accuracy"] = (
            scaling_columns.ACCURACY,
            tuple(map(source.accuracy_column, parts)),
        )
    return tasks


TASKS = _list_tasks()
COLUMNS = read_columns(__package__, "columns.csv", "llm_ladder")


def pack(folder: Path) -> Packed:
    """Return the evaluations of all files, with the columns that are read.

    Raises: UserError when a file is absent or broken.
    """
    frames = []
    rejections = list[Rejection]()
    for (size, _, _), name in _list_files():
        rows = read_rows(SOURCE, folder / name, _list_read(size))
        frames.append(rows.frame.assign(file=name))
        rejections += rows.rejections
    records = pd.concat(frames, ignore_index=True).fillna("")
    return Packed(join_rejections(records, rejections), "columns that nothing reads, and other files")


def _list_files() -> list[tuple[tuple[str, str, int], str]]:
    """Return size, multiplier and repetition of every run with its file, targets last."""
    targets = [((size, "", 0), name) for size, name in source.TARGETS.items()]
    return [*source.list_runs().items(), *targets]


def _list_read(size: str) -> list[str]:
    """Return the columns that are read of a file."""
    return [
        *source.progress_columns(size),
        *source.result_columns(),
        source.BATCH,
        source.PEAK_RATE,
    ]


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the last evaluation of every run. An input row is one task of one evaluation.

    Raises:
        UserError: A file is absent or broken, or every row of it is rejected.
    """
    del options
    records, rejections = split_rejections(SOURCE, read_records(raw[SOURCE], SOURCE, pack))
    lasts = []
    evaluations = 0
    for (size, multiplier, repetition), name in _list_files():
        good, rejected = _parse_run(records, name, size)
        evaluations += len(good)
        rejections += rejected
        lasts.append(_describe_last(good, name, size, multiplier, repetition))
    runs = pd.concat(lasts, ignore_index=True)
    return Standardized(
        table=build_table("llm_ladder", _melt(runs), COLUMNS),
        rejected=build_rejected_frame(rejections),
        rows_in=len(rejections) + evaluations * len(TASKS),
        merged={"earlier_checkpoint": (evaluations - len(runs)) * len(TASKS)},
        quality={
            "evaluations": evaluations,
            "runs": len(runs),
            "by_size": runs["model_size"].value_counts().to_dict(),
        },
    )


def _parse_run(records: pd.DataFrame, name: str, size: str) -> tuple[pd.DataFrame, list[Rejection]]:
    """Return the usable evaluations of a file in the order of its lines, with the rejected ones.

    Raises: UserError when every row is rejected.
    """
    progress = source.progress_columns(size)
    columns = _list_read(size)
    parsed = parse_numbers(records.loc[records["file"] == name, ["line", *columns]], columns)
    numbers = parsed[[*progress, *source.result_columns(), source.BATCH]]
    shares = parsed[[source.accuracy_column(part) for parts in source.QUESTIONS.values() for part in parts]]
    rules = {
        "not_a_number": describe_first_bad(numbers.isna(), parsed),
        "not_positive": describe_first_bad(numbers <= 0, parsed),
        "above_one": describe_first_bad(shares > 1, parsed),
        "repeated_step": parsed[f"{progress[0]}_text"].where(parsed.duplicated(progress[0])),
    }
    good, rejected = quarantine(SOURCE, name, parsed, rules)
    require_rows(len(good), name, rejected)
    return good, rejected


def _describe_last(good: pd.DataFrame, name: str, size: str, multiplier: str, repetition: int) -> pd.DataFrame:
    """Return the last evaluation of a run, one row, with the facts of the run."""
    last = good.sort_values(source.progress_columns(size)[0]).iloc[[-1]]
    tokens = last[source.TOKENS] if source.TOKENS in last else last[source.STEP] * last[source.BATCH]
    step = last[source.STEP] if source.STEP in last else last[source.TOKENS] / last[source.BATCH]
    return last.assign(
        **_name_run(name, size, multiplier, repetition),
        params=float(PARAMS[size]),
        tokens=tokens,
        compute=scaling_columns.FLOP_PER_PARAM_TOKEN * PARAMS[size] * tokens / 1e18,
        tokens_per_param=tokens / PARAMS[size],
        batch_tokens=last[source.BATCH],
        peak_learning_rate=last[source.PEAK_RATE],
        step=step.round(),
        published_subset=_published_subset(size, multiplier),
        source_line=last["line"],
    )


def _name_run(name: str, size: str, multiplier: str, repetition: int) -> dict[str, str]:
    configuration = f"{size}-{multiplier}xC" if multiplier else f"{size}-target"
    return {
        "model_size": size,
        "configuration": configuration,
        "run": configuration + ("-rerun" if repetition else ""),
        "source_file": name,
    }


def _published_subset(size: str, multiplier: str) -> str | float:
    if size in source.TARGETS:
        return "test"
    if multiplier not in MULTIPLIERS_PUBLISHED:
        return np.nan
    return SUBSETS_PUBLISHED.get(size, np.nan)


def _melt(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run and task."""
    parts = []
    for task, (kind, columns) in TASKS.items():
        name = task.removesuffix(f"_{kind}")
        is_share = kind == scaling_columns.ACCURACY
        results = runs.assign(
            task=task,
            task_kind=kind,
            loss_task=f"{name}_{scaling_columns.BITS}" if is_share else np.nan,
            chance=CHANCE[name] if is_share else np.nan,
            value=runs[list(columns)].mean(axis=1),
            result_id=runs["run"] + "|" + task,
        )
        parts.append(results)
    return pd.concat(parts, ignore_index=True)
