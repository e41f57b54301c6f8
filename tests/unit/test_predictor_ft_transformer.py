"""What makes `ft_transformer` the published network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._feature_transformer import FeatureTransformer, ReGLU, TransformerBlock
from perfcast.predictors.ft_transformer import FTTransformer
from perfcast.schema import Column, Kind, Role, Tag
from perfcast.training.data import Rows

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {"width": 8, "feed_width": 12, "batch_rows": 32, "least_steps": 0}


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


def network(**changes: Any) -> tuple[FeatureTransformer, Rows]:
    """An untrained network whose head is not zero, and rows for it."""
    torch.manual_seed(0)
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made = FTTransformer(**{**SMALL, **changes}).network(encoder, 2)
    nn.init.normal_(made.head[-1].weight)
    return made.eval(), Rows.of(encoder.transform(frame()), np.zeros((64, 2)))


def block_and_tokens(*, first: bool = False) -> tuple[TransformerBlock, torch.Tensor]:
    torch.manual_seed(0)
    return TransformerBlock(8, 2, 12, 0.0, first=first), torch.randn(3, 6, 8)


def test_cls_alone_asks_for_the_same_answer() -> None:
    block, tokens = block_and_tokens()
    torch.testing.assert_close(block(tokens, 1), block(tokens, 6)[:, :1])


def test_attention_is_scaled_and_split_into_heads() -> None:
    block, tokens = block_and_tokens()
    normed = block.norm(tokens)
    query, (key, value) = block.query(normed), block.key_value(normed).chunk(2, dim=-1)
    heads = []
    for head in (slice(0, 4), slice(4, 8)):
        shares = torch.softmax(query[..., head] @ key[..., head].transpose(1, 2) / 4**0.5, dim=-1)
        heads.append(shares @ value[..., head])
    x = tokens + block.merge(torch.cat(heads, dim=-1))
    torch.testing.assert_close(block(tokens, 6), x + block.feed(block.feed_norm(x)))


def test_feed_forward_is_gated() -> None:
    torch.manual_seed(0)
    feed, x = ReGLU(4, 5, 0.0), torch.randn(7, 4)
    value, gate = feed.enter.weight.chunk(2)
    value_bias, gate_bias = feed.enter.bias.chunk(2)
    hidden = (x @ value.T + value_bias) * (x @ gate.T + gate_bias).clamp(min=0)
    torch.testing.assert_close(feed(x), hidden @ feed.leave.weight.T + feed.leave.bias)


def test_only_the_first_block_attends_without_a_norm() -> None:
    made, _ = network(blocks=3)
    assert [isinstance(block.norm, nn.LayerNorm) for block in made.blocks] == [False, True, True]
    block, tokens = block_and_tokens(first=True)
    assert torch.equal(block.norm(tokens), tokens)


def test_order_of_the_tokens_does_not_matter_to_cls() -> None:
    block, tokens = block_and_tokens()
    turned = tokens[:, [0, 5, 3, 1, 2, 4]]
    torch.testing.assert_close(block(turned, 1), block(tokens, 1))


def test_a_number_is_a_straight_line_of_its_column() -> None:
    made, rows = network()
    tokens = [made.number(Rows(**{**vars(rows), "numbers": torch.full_like(rows.numbers, x)})) for x in (0.0, 1.0, 3.0)]
    torch.testing.assert_close(tokens[2] - tokens[0], 3 * (tokens[1] - tokens[0]))
    assert not torch.allclose(tokens[1][:, 0], tokens[1][:, 1])


@pytest.mark.parametrize("column", ["cores", "mhz", "memory", "family", "suite"])
def test_every_column_reaches_the_forecast(column: str) -> None:
    made, rows = network()
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    X = frame().assign(**{column: frame()[column].to_numpy()[::-1]})
    with torch.inference_mode():
        changed = made(Rows.of(encoder.transform(X), np.zeros((64, 2))))
        assert (changed - made(rows)).abs().max() > 1e-3


def test_every_parameter_is_on_the_path_to_the_forecast() -> None:
    made, rows = network(blocks=3)
    made(rows).pow(2).sum().backward()
    used = {name for name, p in made.named_parameters() if p.grad is not None and p.grad.abs().max() > 0}
    idle = {name for name, p in made.named_parameters() if p.numel()} - used
    assert idle == set()


def test_learns_a_product_of_columns_that_no_line_in_logs_can_hold() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 256), "b": rng.uniform(-1, 1, 256)})
    y = pd.Series(np.exp(X["a"] * X["b"]), name="score")
    predictor = FTTransformer(**{**SMALL, "width": 16}, dropout=0.0, epochs=60).fit(X, y)
    error = np.abs(np.log(predictor.predict(X)["score"] / y)).mean()
    assert error < 0.3 * np.abs(np.log(y)).mean()
