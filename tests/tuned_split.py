"""Split that takes milliseconds a trial to tune."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment import tuning
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


def search(preset="full", seed=0, origin=("table", "t"), **changes):
    conf = validated(PredictorConf, "conf/predictor/random_forest.yaml", {**CONF, **changes})
    origin = dict([origin, ("folds", "f")])
    return tuning.make_search(NAME, conf, preset, machine={}, seed=seed, label_outlier=None, origin=origin)
