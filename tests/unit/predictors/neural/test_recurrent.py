"""`lstm` and `gru`: the columns of a row as a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.recurrent import GRU, LSTM, RecurrentNetwork
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {"d_token": 8, "hidden_size": 16, "n_frequencies": 2, "batch_size": 64, "min_steps": 0}
BOTH = pytest.mark.parametrize("kind", [LSTM, GRU])


def frame(rows: int = 256) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], rows),
            "family": rng.choice(["Alpha", "Beta"], rows),
            "memory": rng.uniform(1, 2, rows),
            "suite": rng.choice(["rate", "speed"], rows),
        }
    )


def network(kind: type[LSTM] | type[GRU], **changes: Any) -> tuple[RecurrentNetwork, TokenBatch]:
    """An untrained network whose head is not zero, and rows for it."""
    torch.manual_seed(0)
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made = kind(**{**SMALL, **changes}).build_network(encoder.spec, 2)
    assert isinstance(made, RecurrentNetwork)
    nn.init.normal_(made.head[-1].weight)
    return made.eval(), TokenBatch.from_tokens(encoder.transform(frame()), np.zeros((256, 2)))


@BOTH
def test_cell_is_the_one_of_the_name(kind: type[LSTM] | type[GRU]) -> None:
    assert type(network(kind)[0].recurrent).__name__ == kind.__name__


@BOTH
def test_every_parameter_is_on_the_path_to_the_prediction(kind: type[LSTM] | type[GRU]) -> None:
    made, rows = network(kind, num_layers=2)
    # A missing value, so that its vector is used.
    rows.missing[0] = 1.0
    made(rows).pow(2).sum().backward()
    idle = [name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert idle == []


@BOTH
def test_the_sequence_is_the_first_token_then_the_columns_by_group_and_name(kind: type[LSTM] | type[GRU]) -> None:
    made, rows = network(kind)
    seen: list[torch.Tensor] = []
    made.recurrent.register_forward_hook(lambda _, inputs, output: seen.append(inputs[0]))
    with torch.inference_mode():
        made(rows)
        # Numbers are memory's, then the processor's: the first of them is the second step.
        made(TokenBatch(**{**vars(rows), "numbers": rows.numbers + torch.tensor([[1.0, 0.0]])}))
    assert seen[0].shape == (1 + 4, 256, 8)
    moved = (seen[0] - seen[1]).abs().amax(dim=(1, 2)) > 0
    assert moved.tolist() == [False, True, False, False, False]


@BOTH
def test_read_out_is_the_mean_of_the_states(kind: type[LSTM] | type[GRU]) -> None:
    made, rows = network(kind)
    seen: list[torch.Tensor] = []
    made.recurrent.register_forward_hook(lambda _, inputs, output: seen.append(output[0]))
    with torch.inference_mode():
        predicted = made(rows)
        torch.testing.assert_close(made.head(seen[0].sum(dim=0) / 5), predicted)


@BOTH
def test_learns_what_depends_on_two_columns(kind: type[LSTM] | type[GRU]) -> None:
    X = frame()
    # No straight line per suite: the family turns the effect of the memory round.
    sign = np.where(X["family"] == "Alpha", 1.0, -1.0)
    y = pd.Series(np.exp(sign * 2 * (X["memory"] - 1.5)), name="score")
    predictor = kind(**{**SMALL, "epochs": 40, "dropout": 0.0, "learning_rate": 1e-2})
    predicted = predictor.fit(X, y, columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(predicted / y)).mean() < 0.3 * np.abs(np.log(y)).mean()


def test_the_two_cells_differ() -> None:
    X = frame()
    y = pd.Series(X["cores"] * X["memory"], name="score")
    predictions = [kind(**SMALL, epochs=2).fit(X, y, columns=COLUMNS).predict(X) for kind in (LSTM, GRU)]
    assert not predictions[0].equals(predictions[1])
