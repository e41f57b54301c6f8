"""Loader and scorer of an exported task: a file of its own that needs numpy, and pandas with pyarrow, alone.

for fold in load_folds("task", "forward_2025"):
    model.fit(fold.X_train, fold.y_train)
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SUBMISSION = ["row", "target", "point", "low", "high", "split_sha256"]
"""Columns of a file of predictions; `seed` and `cpu_seconds` may be added. `low` and `high` are 5 % and 95 %."""


@dataclass(frozen=True)
class Fold:
    """Training rows and test rows of one fold, by row id.

    `X_` has the features alone. `keys_train` has entity, task, block and time of each row: what inner folds go by.
    `is_validation` marks the training rows that the project makes its choices on. `structure_` is the logarithm of the
    prediction of the project's analytical model, None where the task was exported without it.
    """

    X_train: pd.DataFrame
    y_train: pd.DataFrame
    keys_train: pd.DataFrame
    is_validation: pd.Series
    X_test: pd.DataFrame
    keys_test: pd.DataFrame
    structure_train: pd.DataFrame | None
    structure_test: pd.DataFrame | None


def load_folds(folder: str | Path, split: str) -> list[Fold]:
    """Return the folds of a split. No scores of test rows are among them."""
    folder = Path(folder)
    features, keys, scores = (read_rows(folder / f"{name}.parquet") for name in ("features", "keys", "scores"))
    subsets = pd.read_csv(folder / "splits" / f"{split}.csv", dtype="str", index_col="row")
    folds = []
    for fold in subsets:
        path = folder / "structure" / f"{split}.{fold}.parquet"
        structure = read_rows(path) if path.is_file() else None
        subset = subsets[fold]
        train = subset.index[subset.isin(["train", "validation"]) & scores.notna().any(axis=1).reindex(subset.index)]
        test = subset.index[subset == "test"]
        folds.append(
            Fold(
                features.loc[train],
                scores.loc[train],
                keys.loc[train],
                subset.loc[train] == "validation",
                features.loc[test],
                keys.loc[test, ["entity", "task"]],
                None if structure is None else structure.loc[train],
                None if structure is None else structure.loc[test],
            )
        )
    return folds


def read_rows(path: Path) -> pd.DataFrame:
    """Return a table of the task by row id."""
    return pd.read_parquet(path).set_index("row")


def make_submission(
    folder: str | Path, split: str, point: pd.DataFrame, low: pd.DataFrame, high: pd.DataFrame
) -> pd.DataFrame:
    """Return a file of predictions from those of all folds: a column for each target, by row id."""
    digest = hashlib.sha256((Path(folder) / "splits" / f"{split}.csv").read_bytes()).hexdigest()
    long = pd.DataFrame({"point": point.stack(), "low": low.stack(), "high": high.stack()})
    long = long.rename_axis(["row", "target"]).reset_index()
    return long.assign(split_sha256=digest)[SUBMISSION]


def score(folder: str | Path, submission: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics in % by task and their average; rows of the submission without a score do not count."""
    folder = Path(folder)
    level = json.loads((folder / "task.json").read_text())["level"]
    scores = read_rows(folder / "scores.parquet").reset_index().melt("row", var_name="target", value_name="measured")
    frame = submission.merge(scores.dropna(), on=["row", "target"])
    frame["task"] = read_rows(folder / "keys.parquet").loc[frame["row"], "task"].to_numpy()
    frame["seed"] = frame.get("seed", 0)
    frame["error"] = 100 * (frame["point"] - frame["measured"]).abs() / frame["measured"]
    logs = np.log(frame[["low", "measured", "high"]])
    outside = np.maximum(logs["low"] - logs["measured"], logs["measured"] - logs["high"])
    frame["interval_score"] = 100 * (logs["high"] - logs["low"] + 2 / (1 - level) * outside.clip(lower=0))
    frame["coverage"] = 100.0 * (outside <= 0)
    seeds = frame.groupby(["task", "seed"])
    table = seeds[["interval_score", "coverage"]].mean()
    table.insert(0, "mape", seeds["error"].mean())
    table.insert(1, "medape", seeds["error"].median())
    table = table.groupby("task").mean()
    return pd.concat([table, table.mean().to_frame("average").T])
