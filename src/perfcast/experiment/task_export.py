"""A dataset and its splits as files for predictors outside the package, and their predictions read back."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.config.predictor_conf import PredictorConf
from perfcast.evaluation.run_predictions import HALF_WIDTH, read_backtests, read_predictions, with_intervals
from perfcast.experiment import task_kit
from perfcast.experiment.fitting import fit_rows, measured_rows, tested_rows, training_rows
from perfcast.experiment.selection import predictor_factory
from perfcast.predictors.predictor import Predictor, predict_logs
from perfcast.schema.table import Role, Table, Tag
from perfcast.schema.table_files import content_digest, read_parquet
from perfcast.splits import describe_split, frozen_split, read_folds, split_label, split_version
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, write_json

KEYS = {"entity": Tag.ENTITY, "task": Tag.TASK, "block": Tag.BLOCK, "time": Tag.TIME}
"""Columns of keys.parquet by the tag of their column in the table."""


def check_split(name: str) -> None:
    """Check that predictors of a split are trained once. Raises: UserError for a rolling split."""
    if frozen := frozen_split(name):
        fact = f"{name} corrects those of {frozen} month by month"
        raise UserError("predictions of a task must be made once", fact, f"take {frozen}")


def read_split(path: Path, table: Table, label_outlier: float | None) -> pd.DataFrame:
    """Return the subset of every row in every fold, by row id; rows without a score that counts are unused.

    A score does not count where it is excluded, or where no training row of its task has the target.
    """
    folds = read_folds(path, table)
    rows = pd.Index(table.frame[table.column_of(Tag.ROW)].astype("str"), name="row")
    subsets = {}
    for fold in folds:
        subset = folds[fold].to_numpy(dtype=object)
        expected = list_expected(table, subset, label_outlier)
        counted = rows.isin(expected["row"])
        trained = np.isin(subset, ["train", "validation"]) & measured_rows(table)
        subsets[fold] = np.where(counted | trained, subset, "unused")
    return pd.DataFrame(subsets, index=rows)


def list_expected(table: Table, subset: np.ndarray, label_outlier: float | None) -> pd.DataFrame:
    """Return the scores of a fold that are predicted: columns row, task, entity, target, measured."""
    training = training_rows(table, subset, label_outlier)
    tested = tested_rows(table, subset)
    tasks = table.frame[table.column_of(Tag.TASK)].astype("str")
    parts = []
    for target in table.select(role=Role.TARGET):
        scores = table.frame[target]
        learned = tasks.isin(tasks[training & scores.notna()])
        rows = table.frame[tested & measured_rows(table) & scores.notna() & learned]
        about = {name: rows[table.column_of(tag)].astype("str") for name, tag in _EXPECTED.items()}
        parts.append(pd.DataFrame({**about, "target": target, "measured": rows[target]}))
    return pd.concat(parts, ignore_index=True)


_EXPECTED = {"row": Tag.ROW, "task": Tag.TASK, "entity": Tag.ENTITY}


def split_text(subsets: pd.DataFrame) -> str:
    """Return the file of a split, whose SHA-256 names it in a submission."""
    text: str = subsets.to_csv(lineterminator="\n")
    return text


def split_digest(subsets: pd.DataFrame) -> str:
    """Return the SHA-256 of the file of a split."""
    return hashlib.sha256(split_text(subsets).encode()).hexdigest()


def export_task(
    out: Path,
    table: Table,
    splits: Sequence[str],
    *,
    folds: Path,
    label_outlier: float | None,
    structure: PredictorConf | None,
) -> Iterator[str]:
    """Write a task to a new folder, and yield what is written.

    Args:
        folds: Folder of the splits of the dataset.
        structure: Predictor whose predictions are exported too, for learners of its residual; preset `quick`.

    Raises: UserError when the folder exists, or a split is no task.
    """
    if out.exists():
        raise UserError("--out must be a new folder", f"{out} exists", "name another one")
    for name in splits:
        check_split(name)
    row = table.column_of(Tag.ROW)
    rows = table.frame[row].astype("str").rename("row")
    features = table.select(role=Role.FEATURE)
    targets = table.select(role=Role.TARGET)
    keys = {name: table.frame[table.column_of(tag)] for name, tag in KEYS.items() if table.select(tag=tag)}
    subsets = {name: read_split(folds / f"{name}.parquet", table, label_outlier) for name in splits}
    with atomic_folder(out) as folder:
        _write(pd.concat([rows, table.frame[features]], axis=1), folder / "features.parquet")
        _write(pd.concat([rows, table.frame[targets]], axis=1), folder / "scores.parquet")
        _write(pd.DataFrame({"row": rows, **keys}), folder / "keys.parquet")
        declared = [asdict(column) for column in table.columns if column.name in {*features, *targets}]
        _declare_columns(declared, folder / "columns.csv")
        (folder / "splits").mkdir()
        about = {}
        for name, subset in subsets.items():
            (folder / "splits" / f"{name}.csv").write_text(split_text(subset), encoding="utf-8")
            about[name] = {
                "label": split_label(name),
                "tests": describe_split(name),
                "version": split_version(name),
                "sha256": split_digest(subset),
            }
            if structure:
                make = predictor_factory(structure, structure.arguments("quick"), {})
                for fold in subset:
                    predicted = _predict_structure(make(0), table, subset[fold], label_outlier)
                    (folder / "structure").mkdir(exist_ok=True)
                    _write(predicted, folder / "structure" / f"{name}.{fold}.parquet")
        version = content_digest(table)
        named = structure.target.rpartition(".")[2] if structure else None
        write_json(
            folder / "task.json",
            {"dataset": table.dataset, "table": version, "level": LEVEL, "structure": named, "splits": about},
        )
        shutil.copyfile(str(task_kit.__file__), folder / "task.py")
    yield f"{out}: {len(rows)} rows, {len(features)} features"
    for name, entry in about.items():
        yield f"  {name}: sha256 {entry['sha256']}"


def _write(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path, index=False, compression="zstd")


def _declare_columns(declared: Sequence[dict[str, object]], path: Path) -> None:
    frame = pd.DataFrame(declared)
    frame["tags"] = [" ".join(tags) for tags in frame["tags"]]
    frame.to_csv(path, index=False, lineterminator="\n")


def _predict_structure(
    predictor: Predictor, table: Table, subsets: pd.Series, label_outlier: float | None
) -> pd.DataFrame:
    """Return the logarithm of a predictor's prediction for the training and test rows of one fold, with their ids."""
    subset = subsets.to_numpy(dtype=object)
    # as the structure of a ResidualStack: without rows for choices of its own
    fitted = fit_rows(predictor, table, training_rows(table, subset, label_outlier), None)
    rows = subset != "unused"
    logs = predict_logs(fitted, table.frame.loc[rows, fitted.input_names()])
    frame = pd.DataFrame(logs, columns=list(fitted.targets_))
    frame.insert(0, "row", subsets.index[rows])
    return frame


def export_run(run: Path, split: str, digest: str, in_domain: Path, level: float = LEVEL) -> pd.DataFrame:
    """Return the predictions of a run of the project as a submission.

    Args:
        digest: The SHA-256 of the split's file.
        in_domain: File of the distances of the split; without it the predictions have no interval.
    """
    predictions = read_predictions(split, run.name, run).frame
    far = read_parquet(in_domain) if in_domain.is_file() else None
    frame = with_intervals(predictions, read_backtests(run), far, level)
    factor = np.exp(frame[HALF_WIDTH])
    bounds = {"low": frame["predicted"] / factor, "high": frame["predicted"] * factor}
    frame = frame.assign(point=frame["predicted"], split_sha256=digest, **bounds)
    has_intervals = frame[HALF_WIDTH].notna().all()
    names = [name for name in task_kit.SUBMISSION if has_intervals or name not in bounds]
    return frame[[*names, "seed"]]
