"""Split that takes milliseconds a trial to tune, also as a separate process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment import selection, tuning
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table

NAME = "demo/random/random_forest"
COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)
CONF = {
    "_target_": "perfcast.predictors.trees.RandomForest",
    "stochastic": True,
    "params": {"n_estimators": 2, "min_samples_leaf": 7},
    "quick": {"n_estimators": 1, "max_features": 0.9},
    "space": {"min_samples_leaf": {"low": 1, "high": 20, "log": True}, "max_features": {"low": 0.2, "high": 1.0}},
}
PART = np.array((["train"] * 4 + ["validation"] + ["test"]) * 10, dtype=object)


def make_table() -> Table:
    rng = np.random.default_rng(0)
    cores, mhz = rng.integers(1, 65, 60).astype(float), rng.integers(20, 40, 60) * 100.0
    frame = pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(60)],
            "part": [f"p{i % 6}" for i in range(60)],
            "suite": "int",
            "cores": cores,
            "mhz": mhz,
            "score": cores**0.9 * mhz * np.exp(rng.normal(0, 0.05, 60)),
        }
    )
    return build_table("demo", frame, COLUMNS)


def search(preset="full", seed=0, origin=("table", "t"), at_once=1, **changes):
    conf = validated(PredictorConf, "conf/predictor/random_forest.yaml", {**CONF, **changes})
    origin = dict([origin, ("folds", "f")])
    return tuning.make_search(
        NAME, conf, preset, machine={}, seed=seed, label_outlier=None, origin=origin, at_once=at_once
    )


def hang(marker: Path) -> None:
    """Make this process hang in its third trial, marked by a file."""
    real, calls = selection.inner_error, iter(range(3))

    def inner_error(*arguments):
        if next(calls) == 2:
            marker.touch()
            time.sleep(600)
        return real(*arguments)

    selection.inner_error = inner_error


def main(folder: Path, storage: str, trials: int, at_once: int, marker: str = "") -> None:
    if marker:
        hang(Path(marker))
    tuning_search = search(at_once=at_once)
    tuning.tune(
        tuning_search, tuning.open_store(folder / "study", storage), make_table(), {0: PART, 1: PART},
        trials=trials, timeout=None, report=lambda line: print(line, flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
