"""Code that the scripts of peers share: arguments, encoding, inner quantiles, and the file of predictions."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

QUANTILES = (0.05, 0.95)


def read_arguments():
    """Return the arguments of a peer's script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, required=True, help="folder that `perfcast task export` wrote")
    parser.add_argument("--split", required=True)
    parser.add_argument("--out", type=Path, required=True, help="predictions, a Parquet file")
    parser.add_argument("--residual", action="store_true", help="learn the residual of the exported structure")
    return parser.parse_args()


def load_task(folder):
    """Return the module task.py of an exported task."""
    spec = importlib.util.spec_from_file_location("exported_task", folder / "task.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported_task"] = module
    spec.loader.exec_module(module)
    return module


def run_peer(predict):
    """Predict every fold, and write the submission with the processor's seconds.

    Args:
        predict: function of a fold and the training scores, as logarithms or their residual; it returns point, low
            and high of the test rows, three arrays in the same unit.
    """
    options = read_arguments()
    task = load_task(options.task)
    started = _cpu_seconds()
    parts = []
    for fold in task.load_folds(options.task, options.split):
        if options.residual and fold.structure_train is None:
            sys.exit("--residual needs a task that was exported with --structure")
        target = fold.y_train.columns[0]
        offset_train = fold.structure_train[target] if options.residual else 0.0
        offset_test = fold.structure_test[target].to_numpy() if options.residual else 0.0
        made = predict(fold, np.log(fold.y_train[target]) - offset_train)
        parts.append([pd.DataFrame({target: np.exp(logs + offset_test)}, fold.X_test.index) for logs in made])
    seconds = _cpu_seconds() - started
    point, low, high = (pd.concat(frames) for frames in zip(*parts, strict=True))
    low, high = np.minimum(low, high), np.maximum(low, high)
    submission = task.make_submission(options.task, options.split, point, low, high)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    submission.assign(cpu_seconds=seconds).to_parquet(options.out, index=False)
    print(f"{options.out}: {len(submission)} predictions, {seconds:.0f} CPU seconds, {time.strftime('%H:%M')}")


def _cpu_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def inner_rows(fold):
    """Return the rows to fit on and those to calibrate on, (n,) bool each: the project's own validation rows."""
    held_out = fold.is_validation.to_numpy()
    return ~held_out, held_out


def encode(fold, *, one_hot=False):
    """Return training and test features as numbers: categories as codes of training, -1 for unknown ones."""
    train, test = fold.X_train.copy(), fold.X_test.copy()
    texts = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    for name in texts:
        labels = train[name].dropna().unique()
        train[name] = pd.Categorical(train[name], labels).codes
        test[name] = pd.Categorical(test[name], labels).codes
    if one_hot:
        medians = train.median()
        train, test = (pd.get_dummies(each.fillna(medians), columns=texts, dtype=float) for each in (train, test))
        test = test.reindex(columns=train.columns, fill_value=0.0)
    return train, test


def conformal_margin(residuals, tasks_calibration, tasks_test, level=0.9):
    """Return the half-width of every test row: the quantile of absolute residuals of its task."""
    residuals = pd.Series(np.abs(residuals), np.asarray(tasks_calibration))

    def quantile(values):
        count = len(values)
        return np.quantile(values, min(1.0, np.ceil((count + 1) * level) / count))

    whole = quantile(residuals.to_numpy())
    by_task = residuals.groupby(level=0).agg(quantile)
    return pd.Series(np.asarray(tasks_test)).map(by_task).fillna(whole).to_numpy()
