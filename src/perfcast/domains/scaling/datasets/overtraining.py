"""open_lm models of several sizes, lengths and training sets: losses on eight sets, accuracies on 46 tasks.

Facts of the files:
- Parameters include the embeddings; a multiplier of 1 is 20 tokens per parameter.
- Most accuracies are those of a random choice: at most two standard errors above its share. They are excluded from
  evaluation. An accuracy of 0 is stored as half a question, because targets are positive.
- Paths of the authors' cluster are in the files; they are not read.

Source: Gadre et al., 2024, arXiv 2403.08540.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import parse_numbers
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import (
    Rejection,
    build_rejected_frame,
    read_rows,
    require_rows,
)
from perfcast.domains import read_columns
from perfcast.domains.scaling.datasets import scaling_columns
from perfcast.domains.scaling.sources import mlfoundations_scaling as source
from perfcast.schema.table import build_table
from perfcast.sources.bounded_files import FETCH_AGAIN
from perfcast.sources.packed import Packed, read_records
from perfcast.utils.errors import UserError

SOURCE = "mlfoundations_scaling"
LOSS_TASK = "c4_val_loss"
"""Loss that the authors predict accuracies from."""
CHANCE_ERRORS = 2.0
"""Standard errors above a random choice up to which an accuracy is that of chance."""
MIN_VARIANCE = 1e-4
"""Least variance of one answer: a task without choices has a chance of 0, and few right answers still mean nothing."""

_SHAPE = r"^d=(\d{1,5})_l=(\d{1,4})_h=(\d{1,4})$"
_HYPERPARAMETERS = {
    "params": "params",
    "params_no_embed": "params_without_embeddings",
    "tokens": "tokens",
    "lr": "learning_rate",
    "wd": "weight_decay",
    "warmup": "warmup_steps",
    "cd": "final_learning_rate",
    "global_bs": "batch_sequences",
    "chinchilla_multiplier": "multiplier",
}
"""Hyperparameter of the files -> column."""
_LOSS_COLUMNS = {
    "loss": "value",
    "samples_per_second": "samples_per_second",
    "loss_tokens_lower_95": "loss_low",
    "loss_tokens_upper_95": "loss_high",
}
"""Value of a result of the files -> column."""
_TASK_FACTS = {"#datapoints": "questions", "Random baseline": "chance_percent"}
"""Column of the table of tasks -> column of a record."""
_NUMBERS = (
    *_HYPERPARAMETERS.values(),
    *_LOSS_COLUMNS.values(),
    *_TASK_FACTS.values(),
)
_RECORD = [
    "file",
    "line",
    "model",
    "training_set",
    "evaluated",
    "task_kind",
    "of",
    *_NUMBERS,
]
"""Columns of a record; `of` names the validation set of a loss, and the benchmark of an accuracy."""


COLUMNS = read_columns(__package__, "columns.csv", "llm_overtraining")


def pack(folder: Path) -> Packed:
    """Return every loss and accuracy with the hyperparameters of its model and the facts of its task.

    Raises: UserError when a file is absent or has another structure.
    """
    names = source.list_models(folder)
    if not names:
        raise UserError(
            f"source {SOURCE!r} must have files of models",
            f"{folder} has none",
            FETCH_AGAIN,
        )
    tasks = read_rows(SOURCE, folder / source.TASKS, source.TASK_COLUMNS).frame
    facts_of_task = dict(zip(tasks["Eval Task"], tasks[[*_TASK_FACTS]].to_dict("records"), strict=True))
    rows = [row for name in names for row in _list_results(folder, name, facts_of_task)]
    return Packed(
        pd.DataFrame(rows, columns=_RECORD, dtype="str").fillna(""),
        "paths, seeds and commands of trainings",
    )


def _list_results(folder: Path, name: str, tasks: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the losses and the accuracies of a model as texts."""
    model = source.read_model(folder, name)
    date, accuracies = source.read_accuracies(folder, name)
    of_model = {
        "model": name,
        "training_set": str(model["dataset_name"]),
        "evaluated": date,
    }
    for key, column in _HYPERPARAMETERS.items():
        of_model[column] = _number_text(model["hyperparameters"].get(key))
    for line, entry in enumerate(model["results"], 1):
        values = {column: _number_text(entry.get(key)) for key, column in _LOSS_COLUMNS.items()}
        yield {
            **of_model,
            **values,
            "file": source.model_file(name),
            "line": str(line),
            "task_kind": scaling_columns.LOSS,
            "of": _validation_set(entry),
        }
    for line, (task, value) in enumerate(accuracies.items(), 1):
        facts = {_TASK_FACTS[key]: text for key, text in tasks.get(task, {}).items()}
        yield {
            **of_model,
            **facts,
            "file": source.evaluation_file(name),
            "line": str(line),
            "task_kind": scaling_columns.ACCURACY,
            "of": task,
            "value": _number_text(value),
        }


def _number_text(value: Any) -> str:
    """Return a finite number with all of its digits, "" for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(value) if is_number and np.isfinite(value) else ""


def _validation_set(entry: Mapping[str, Any]) -> str:
    """Return the folder of a validation set's files, which is its name."""
    paths = entry.get("val_data")
    if not isinstance(paths, list) or not paths:
        return ""
    return PurePosixPath(str(paths[0])).parent.name


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the results of all models. An input row is one loss or one accuracy of a model.

    Raises:
        UserError: A file is absent or has another structure, or every row is rejected.
    """
    del options
    described = _describe(read_records(raw[SOURCE], SOURCE, pack))
    rejections = []
    is_good = []
    for row in described.to_dict("records"):
        reason = _find_defect(row)
        is_good.append(not reason)
        if reason:
            detail = f"{row['task']}: {row['value']}"
            rejections.append(Rejection(SOURCE, row["source_file"], row["source_line"], reason, detail[:200]))
    frame = described[is_good]
    require_rows(len(frame), SOURCE, rejections)
    positive = frame.assign(value=frame["value"].where(frame["value"] > 0, 0.5 / frame["questions"]))
    table = build_table("llm_overtraining", positive, COLUMNS)
    is_share = table.frame["task_kind"] == scaling_columns.ACCURACY
    quality = {
        "models": int(table.frame["model"].nunique()),
        "losses": int((~is_share).sum()),
        "accuracies": int(is_share.sum()),
        "accuracies_at_chance": int(table.frame["at_chance"].sum()),
        "accuracies_of_zero": int((frame["value"] == 0).sum()),
    }
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=len(described),
        quality=quality,
    )


def _describe(records: pd.DataFrame) -> pd.DataFrame:
    """Return losses and accuracies with the columns of the table."""
    parsed = parse_numbers(records, _NUMBERS)
    names = zip(records["model"], records["training_set"], strict=True)
    sizes = [name.removeprefix(f"{training_set}-").rpartition("-")[0] for name, training_set in names]
    size = pd.Series(sizes, records.index, dtype="str")
    shape = size.str.extract(_SHAPE).astype("float64")
    is_share = records["task_kind"] == scaling_columns.ACCURACY
    chance = parsed["chance_percent"] / 100
    variance = (chance * (1 - chance)).clip(lower=MIN_VARIANCE)
    limit = chance + CHANCE_ERRORS * np.sqrt(variance / parsed["questions"])
    task = records["of"] + "_" + records["task_kind"]
    return parsed.assign(
        task=task,
        result_id=records["model"] + "|" + task,
        loss_task=np.where(is_share, LOSS_TASK, np.array(None)),
        chance=chance,
        at_chance=(is_share & (parsed["value"] <= limit)).astype(float),
        compute=scaling_columns.FLOP_PER_PARAM_TOKEN * parsed["params"] * parsed["tokens"] / 1e18,
        model_size=size,
        evaluated=pd.to_datetime(records["evaluated"], format="%Y_%m_%d-%H_%M_%S", errors="coerce"),
        width=shape[0],
        layers=shape[1],
        heads=shape[2],
        source_file=records["file"],
        source_line=records["line"].astype("int64"),
    )


def _find_defect(record: Mapping[Hashable, Any]) -> str:
    """Return the reason of a rejection, "" for none."""
    is_share = record["task_kind"] == scaling_columns.ACCURACY
    if record["task"] == f"_{scaling_columns.LOSS}":
        return "unknown_validation_set"
    if is_share and not np.isfinite(record["chance"]):
        return "unknown_task"
    if not all(np.isfinite(record[name]) and record[name] > 0 for name in ("params", "tokens")):
        return "no_size"
    if not np.isfinite(record["value"]):
        return "not_a_number"
    if record["value"] < 0 or (record["value"] == 0 and not is_share):
        return "not_positive"
    return "above_one" if is_share and record["value"] > 1 else ""
