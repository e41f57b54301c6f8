"""open_lm models of several sizes, lengths and training sets: losses on eight sets, accuracies on 46 tasks.

Facts of the files:
- Parameters include the embeddings; a multiplier of 1 is 20 tokens per parameter.
- Most accuracies are those of a random choice: at most two standard errors above its share. They are excluded from
  evaluation. An accuracy of 0 is stored as half a question, because targets are positive.
- Paths of the authors' cluster are in the files; they are not read.

Source: Gadre et al., 2024, arXiv 2403.08540.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import parse_numbers
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, read_rows, require_rows
from perfcast.domains.scaling.datasets import scaling_columns
from perfcast.domains.scaling.sources import mlfoundations_scaling as source
from perfcast.schema.declare import category
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.sources.bounded_files import FETCH_AGAIN
from perfcast.utils.errors import UserError

SOURCE = "mlfoundations_scaling"
LOSS_TASK = "c4_val_loss"
"""Loss that the authors predict accuracies from."""
CHANCE_ERRORS = 2.0
"""Standard errors above a random choice up to which an accuracy is that of chance."""
MIN_VARIANCE = 1e-4
"""Least variance of one answer: a task without choices has a chance of 0, and few right answers still mean nothing."""

_SHAPE = re.compile(r"d=(\d{1,5})_l=(\d{1,4})_h=(\d{1,4})")
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
    **{"loss": "value", "samples_per_second": "samples_per_second"},
    **{"loss_tokens_lower_95": "loss_low", "loss_tokens_upper_95": "loss_high"},
}
"""Value of a result of the files -> column."""


def _provenance(name: str, group: str, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.NUMERICAL, Role.PROVENANCE, group, meaning=meaning, low=0, tags=tags)


COLUMNS = (
    *scaling_columns.RESULT_COLUMNS,
    category("model", Role.KEY, "model", "training set, model size and multiplier", Tag.BLOCK, Tag.CONFIG),
    category("training_set", Role.KEY, "training", "text that the model is trained on", Tag.SLICE, Tag.IDENTITY),
    category("model_size", Role.KEY, "model", "name of the model size", Tag.ENTITY, Tag.SLICE),
    Column("evaluated", Kind.DATE, Role.KEY, "evaluation", meaning="time of the evaluation", tags=(Tag.TIME,)),
    *scaling_columns.TRAINING_COLUMNS,
    scaling_columns.number("params_without_embeddings", "model", "parameters without embeddings"),
    scaling_columns.number("multiplier", "training", "tokens over 20 tokens per parameter"),
    scaling_columns.number("learning_rate", "training", "highest learning rate"),
    scaling_columns.number("final_learning_rate", "training", "learning rate at the end"),
    scaling_columns.number("weight_decay", "training", "weight decay"),
    scaling_columns.number("warmup_steps", "training", "steps of the warmup"),
    scaling_columns.number("batch_sequences", "training", "sequences of a batch"),
    scaling_columns.number("width", "model", "width of a layer, where the name of the size states it"),
    scaling_columns.number("layers", "model", "layers, where the name of the size states them"),
    scaling_columns.number("heads", "model", "heads of attention, where the name of the size states them"),
    scaling_columns.TARGET_COLUMN,
    _provenance("at_chance", "evaluation", "1 where an accuracy is that of a random choice", Tag.EXCLUDED),
    _provenance("loss_low", "evaluation", "lower 95 % bound of the loss"),
    _provenance("loss_high", "evaluation", "upper 95 % bound of the loss"),
    _provenance("samples_per_second", "evaluation", "sequences per second of the evaluation of the loss"),
    *scaling_columns.PLACE_COLUMNS,
)


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the results of all models. An input row is one loss or one accuracy of a model.

    Raises:
        UserError: A file is absent or has another structure, or every row is rejected.
    """
    del options
    folder = raw[SOURCE]
    tasks = _read_tasks(folder)
    names = source.list_models(folder)
    if not names:
        raise UserError(f"source {SOURCE!r} must have files of models", f"{folder} has none", FETCH_AGAIN)
    records: list[dict[str, Any]] = []
    rejections: list[Rejection] = []
    for name in names:
        for record in _read_records(folder, name, tasks):
            reason = _find_defect(record)
            if reason:
                place = (str(record["source_file"]), int(record["source_line"]))
                rejections.append(Rejection(SOURCE, *place, reason, f"{record['task']}: {record['value']}"[:200]))
            else:
                records.append(record)
    require_rows(len(records), str(folder / source.TASKS), rejections)
    frame = pd.DataFrame(records)
    frame["value"] = frame["value"].where(frame["value"] > 0, 0.5 / frame["questions"])
    table = build_table("llm_overtraining", frame, COLUMNS)
    accuracies = table.frame["task_kind"] == scaling_columns.ACCURACY
    quality = {
        "models": int(table.frame["model"].nunique()),
        "losses": int((~accuracies).sum()),
        "accuracies": int(accuracies.sum()),
        "accuracies_at_chance": int(table.frame["at_chance"].sum()),
        "accuracies_of_zero": int((pd.DataFrame(records)["value"] == 0).sum()),
    }
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=len(records) + len(rejections),
        quality=quality,
    )


def _read_tasks(folder: Path) -> pd.DataFrame:
    """Return the number of questions and the share of a random choice by task."""
    rows = read_rows(SOURCE, folder / source.TASKS, source.TASK_COLUMNS).frame
    parsed = parse_numbers(rows, source.TASK_COLUMNS[1:]).set_index("Eval Task")
    return pd.DataFrame({"questions": parsed["#datapoints"], "chance": parsed["Random baseline"] / 100})


def _read_records(folder: Path, name: str, tasks: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a record per loss and accuracy of one model."""
    model = source.read_model(folder, name)
    date, accuracies = source.read_accuracies(folder, name)
    shared = {**_describe_model(name, model, date), "loss_task": None, "questions": np.nan}
    records: list[dict[str, Any]] = [
        {
            **shared,
            **{
                "task": f"{_validation_set(entry)}_{scaling_columns.LOSS}",
                "task_kind": scaling_columns.LOSS,
                "at_chance": 0.0,
            },
            **{column: _as_number(entry.get(key)) for key, column in _LOSS_COLUMNS.items()},
            **{"source_file": source.model_file(name), "source_line": line},
        }
        for line, entry in enumerate(model["results"], 1)
    ]
    known = {str(task): (float(row["chance"]), float(row["questions"])) for task, row in tasks.iterrows()}
    for line, (task, value) in enumerate(accuracies.items(), 1):
        chance, questions = known.get(task, (np.nan, np.nan))
        share = _as_number(value)
        limit = chance + CHANCE_ERRORS * np.sqrt(max(chance * (1 - chance), MIN_VARIANCE) / questions)
        records.append(
            {
                **shared,
                **{
                    "task": f"{task}_{scaling_columns.ACCURACY}",
                    "task_kind": scaling_columns.ACCURACY,
                    "loss_task": LOSS_TASK,
                },
                **{"chance": chance, "questions": questions, "value": share, "at_chance": float(share <= limit)},
                **{"source_file": source.evaluation_file(name), "source_line": line},
            }
        )
    return [{**record, "result_id": f"{name}|{record['task']}"} for record in records]


def _describe_model(name: str, model: Mapping[str, Any], date: str) -> dict[str, Any]:
    numbers = {column: _as_number(model["hyperparameters"].get(key)) for key, column in _HYPERPARAMETERS.items()}
    size = name.removeprefix(f"{model['dataset_name']}-").rpartition("-")[0]
    shape = _SHAPE.fullmatch(size)
    width, layers, heads = map(float, shape.groups()) if shape else (np.nan,) * 3
    return {
        **numbers,
        "compute": scaling_columns.FLOP_PER_PARAM_TOKEN * numbers["params"] * numbers["tokens"] / 1e18,
        "model": name,
        "training_set": str(model["dataset_name"]),
        "model_size": size,
        "evaluated": pd.to_datetime(date, format="%Y_%m_%d-%H_%M_%S", errors="coerce"),
        **{"width": width, "layers": layers, "heads": heads},
    }


def _validation_set(entry: Mapping[str, Any]) -> str:
    """Return the folder of a validation set's files, which is its name."""
    paths = entry.get("val_data")
    return PurePosixPath(str(paths[0])).parent.name if isinstance(paths, list) and paths else ""


def _as_number(value: Any) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and np.isfinite(value) else np.nan


def _find_defect(record: Mapping[str, Any]) -> str:
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
