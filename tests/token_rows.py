"""Rows of five columns with scores, and untrained networks that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)


def frame(rows: int = 64) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], rows),
            "mhz": rng.uniform(2000, 3000, rows),
            "memory": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(1, 2, rows)),
            "family": rng.choice(["Alpha", "Beta"], rows),
            "suite": rng.choice(["rate", "speed"], rows),
        }
    )


def targets(X: pd.DataFrame) -> pd.Series:
    return (X["cores"] ** np.where(X["suite"] == "rate", 1.0, 0.3) * X["mhz"]).rename("score")


def encoded(X: pd.DataFrame, outputs: int = 2) -> TokenBatch:
    """Rows as networks read them."""
    return TokenBatch.from_tokens(TokenEncoder().fit(frame(), COLUMNS).transform(X), np.zeros((len(X), outputs)))


def untrained(predictor: NeuralPredictor, outputs: int = 2) -> tuple[Any, TokenBatch]:
    """An untrained network of a predictor, none of whose parameters is zero, and 64 rows for it."""
    torch.manual_seed(0)
    made = predictor.build_network(TokenEncoder().fit(frame(), COLUMNS).spec, outputs)
    for parameter in made.parameters():
        if not parameter.any():
            nn.init.normal_(parameter.data)
    return made.eval(), encoded(frame(), outputs)
