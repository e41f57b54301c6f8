"""`ft_transformer`: feature tokens through the published backbone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from token_rows import COLUMNS, frame, untrained
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.mlp import FTTransformerNetwork
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.attention import FTTransformer

SMALL: dict[str, Any] = {"d_token": 8, "d_ffn": 12, "batch_size": 32, "min_steps": 0}


def network(**changes: Any) -> tuple[FTTransformerNetwork, TokenBatch]:
    """An untrained network whose head is not zero, and rows for it."""
    made, rows = untrained(FTTransformer(**{**SMALL, **changes}), 2)
    nn.init.normal_(made.backbone.output.linear.weight)
    return made.eval(), rows


def test_ft_transformer_reads_only_cls() -> None:
    made, rows = network()
    entered: list[torch.Tensor] = []
    made.backbone.register_forward_hook(lambda _, inputs, output: entered.append(inputs[0]))
    with torch.inference_mode():
        prediction = made(rows)
        (tokens,) = entered
        assert tokens.shape == (64, 1 + 5, 8)
        torch.testing.assert_close(tokens[:, 0], made.cls[0].expand(64, -1))
        # [CLS] comes first, and attention does not depend on the order of the others.
        torch.testing.assert_close(made.backbone(tokens[:, [0, 5, 3, 1, 2, 4]]), prediction)


def test_ft_transformer_embeds_numbers_linearly() -> None:
    made, rows = network()
    tokens = [
        made.number(TokenBatch(**{**vars(rows), "numbers": torch.full_like(rows.numbers, x)})) for x in (0.0, 1.0, 3.0)
    ]
    torch.testing.assert_close(tokens[2] - tokens[0], 3 * (tokens[1] - tokens[0]))
    assert not torch.allclose(tokens[1][:, 0], tokens[1][:, 1])


@pytest.mark.parametrize("column", ["cores", "mhz", "memory", "family", "suite"])
def test_every_column_affects_the_prediction(column: str) -> None:
    made, rows = network()
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    X = frame().assign(**{column: frame()[column].to_numpy()[::-1]})
    with torch.inference_mode():
        changed = made(TokenBatch.from_tokens(encoder.transform(X), np.zeros((64, 2))))
        assert (changed - made(rows)).abs().max() > 1e-3


def test_every_parameter_has_a_gradient() -> None:
    made, rows = network(n_blocks=3)
    made(rows).pow(2).sum().backward()
    used = {name for name, p in made.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    idle = {name for name, p in made.named_parameters() if p.numel()} - used
    assert idle == set()


def test_learns_a_product_of_columns_that_no_line_in_logs_can_hold() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 256), "b": rng.uniform(-1, 1, 256)})
    y = pd.Series(np.exp(X["a"] * X["b"]), name="score")
    predictor = FTTransformer(**{**SMALL, "d_token": 16}, dropout=0.0, epochs=60).fit(X, y)
    error = np.abs(np.log(predictor.predict(X) / y)).mean()
    assert error < 0.3 * np.abs(np.log(y)).mean()
