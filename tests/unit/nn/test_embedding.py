"""The published embeddings of numbers, alone and inside the network of `mlp`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from token_rows import COLUMNS, frame

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.embedding import NumberEmbedding, PeriodicNumbers
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.mlp import MLP, MLPPLR

SMALL: dict[str, Any] = {
    "d_embedding": 4,
    "d_block": 32,
    "n_blocks": 2,
    "batch_size": 32,
    "min_steps": 0,
    "learning_rate": 1e-2,
}


def number_rows(values: torch.Tensor) -> TokenBatch:
    nothing = torch.zeros(len(values), 0, dtype=torch.int64)
    return TokenBatch(
        values, torch.zeros_like(values), nothing, nothing, torch.zeros(1, 1), torch.zeros(len(values), 1)
    )


def embedding() -> PeriodicNumbers:
    torch.manual_seed(0)
    return PeriodicNumbers(n_numbers=3, d_embedding=4, n_frequencies=5, frequency_init_scale=0.5)


def test_embedding_is_periodic_linear_relu() -> None:
    made, x = embedding(), torch.linspace(-2, 2, 7).unsqueeze(1).repeat(1, 3)
    angle = 2 * torch.pi * x.unsqueeze(-1) * made.periodic.periodic.weight
    waves = torch.cat([angle.cos(), angle.sin()], dim=-1)
    linear = made.periodic.linear
    torch.testing.assert_close(made(number_rows(x)), (waves @ linear.weight.T + linear.bias).clamp(min=0))


def test_columns_share_the_linear_layer_and_have_their_own_frequencies() -> None:
    made, x = embedding(), number_rows(torch.full((1, 3), 0.7))
    assert not torch.allclose(made(x)[0, 0], made(x)[0, 1])
    made.periodic.periodic.weight.data[:] = made.periodic.periodic.weight.data[:1]
    torch.testing.assert_close(made(x)[0, 0], made(x)[0, 1])


def test_waves_end_at_three_deviations() -> None:
    made = embedding()
    inside, edge, beyond = (made(number_rows(torch.full((1, 3), x))) for x in (2.5, 3.0, 7.0))
    torch.testing.assert_close(beyond, edge)
    assert not torch.allclose(inside, edge)


def test_only_the_number_embedding_differs_from_mlp() -> None:
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    shapes = [
        {
            name: p.shape
            for name, p in kind(**SMALL).build_network(encoder.spec, 1).named_parameters()
            if "number." not in name
        }
        for kind in (MLP, MLPPLR)
    ]
    assert shapes[0] == shapes[1]
    names = {name for name, _ in MLPPLR(**SMALL).build_network(encoder.spec, 1).named_parameters() if "number." in name}
    assert names == {f"number.periodic.{part}" for part in ("periodic.weight", "linear.weight", "linear.bias")}


def test_table_without_numbers_is_learned() -> None:
    X = frame()[["family", "suite"]]
    y = pd.Series(np.where(X["family"] == "Alpha", 2.0, 5.0) * np.where(X["suite"] == "rate", 1.0, 7.0), name="score")
    predictor = MLPPLR(**SMALL, epochs=40).fit(X, y, columns=COLUMNS[3:])
    assert np.abs(np.log(predictor.predict(X)["score"] / y)).mean() < 0.1


def test_step_inside_the_range_is_learned() -> None:
    x = np.random.default_rng(0).uniform(0, 1, 256)
    X, y = pd.DataFrame({"x": x}), pd.Series(np.where((x > 0.3) & (x < 0.6), 10.0, 1.0), name="score")
    predictor = MLPPLR(**SMALL, epochs=60, dropout=0.0, mask_rate=0.0).fit(X, y)
    assert np.abs(np.log(predictor.predict(X) / y)).mean() < 0.25


def test_a_number_continues_as_a_straight_line_beyond_the_waves() -> None:
    torch.manual_seed(0)
    made = NumberEmbedding(3, 4, n_frequencies=5, frequency_init_scale=0.5)
    near, middle, far = (made(number_rows(torch.full((1, 3), x))) for x in (3.0, 4.0, 5.0))
    torch.testing.assert_close(far - middle, middle - near)
    inside = [made(number_rows(torch.full((1, 3), x))) for x in (0.0, 1.0, 2.0)]
    assert not torch.allclose(inside[2] - inside[1], inside[1] - inside[0])


def test_some_columns_are_embedded_as_in_the_whole_table() -> None:
    torch.manual_seed(0)
    made, batch = NumberEmbedding(3, 4, n_frequencies=5, frequency_init_scale=0.5), number_rows(torch.randn(6, 3))
    torch.testing.assert_close(made(batch, slice(1, 3)), made(batch)[:, 1:3])
    assert made(batch, slice(3, 3)).shape == (6, 0, 4)


def test_missing_number_has_a_vector() -> None:
    made = NumberEmbedding(2, 4, n_frequencies=0, frequency_init_scale=0.5)
    made.missing.data[:] = 7.0
    batch = number_rows(torch.zeros(1, 2))
    known = made(batch)
    batch.missing[:] = 1.0
    torch.testing.assert_close(made(batch), known + 7.0)


def test_table_without_numbers_has_no_vectors() -> None:
    assert NumberEmbedding(0, 4, 5, 0.5)(number_rows(torch.zeros(6, 0))).shape == (6, 0, 4)
