"""The corrected defects of the published network, one test each, and what `NCPP` adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.group_attention import AttentionBlock, GroupAttentionNetwork
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.attention import NCPP
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("dimm", Kind.TEXT, Role.FEATURE, "memory"),
    Column("constant", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {
    "d_token": 8,
    "d_bottleneck": 4,
    "d_block": 16,
    "n_frequencies": 2,
    "batch_size": 32,
    "min_steps": 0,
}


def frame(rows: int = 64, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], rows),
            "mhz": rng.uniform(2000, 3000, rows),
            "family": rng.choice(["Alpha", "Beta"], rows),
            "memory": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(1, 2, rows)),
            "dimm": rng.choice(["M393-A", "M393-B", "HMA-1"], rows),
            "constant": 1.0,
            "suite": rng.choice(["rate", "speed"], rows),
        }
    )


def targets(X: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"score": X["cores"] ** np.where(X["suite"] == "rate", 1.0, 0.3) * X["mhz"]})


def network(**changes: Any) -> tuple[GroupAttentionNetwork, TokenBatch]:
    """An untrained network whose head is not zero, and rows for it."""
    torch.manual_seed(0)
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made = NCPP(**{**SMALL, **changes}).build_network(encoder.spec, 2)
    nn.init.normal_(made.head[-1].weight)
    return made.eval(), TokenBatch.from_tokens(encoder.transform(frame()), np.zeros((64, 2)))


def fitted(**changes: Any) -> NCPP:
    X = frame()
    return NCPP(**{**SMALL, "epochs": 2, **changes}).fit(X, targets(X), columns=COLUMNS)


def test_feed_forward_has_a_hidden_layer_and_bends() -> None:
    feed = AttentionBlock(8, 2, [3], 0.0).ffn
    assert [layer.out_features for layer in feed if isinstance(layer, nn.Linear)] == [16, 8]
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert (feed(x) + feed(-x) - 2 * feed(torch.zeros(8))).abs().max() > 1e-3


def test_scores_are_scaled_by_the_root_of_the_depth() -> None:
    torch.manual_seed(0)
    block, tokens = AttentionBlock(16, 2, [5], 0.0), torch.randn(3, 5, 16)
    weights: list[torch.Tensor] = []
    with torch.inference_mode():
        block(tokens, weights)
        query, key, _ = block.project(block.norm(tokens)).chunk(3, dim=-1)
        query, key = (part.view(3, 5, 2, 8).transpose(1, 2) for part in (query, key))
        expected = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5, dim=-1)
    torch.testing.assert_close(weights[0], expected)


def test_intra_attention_keeps_groups_apart() -> None:
    torch.manual_seed(0)
    block, tokens = AttentionBlock(8, 2, [3, 4], 0.0), torch.randn(2, 7, 8)
    changed = tokens.clone()
    changed[:, 3:] += 1.0
    with torch.inference_mode():
        difference = (block(tokens) - block(changed)).abs().amax(dim=(0, 2))
    assert (difference[:3] == 0).all()
    assert (difference[3:] > 0).all()


def test_groups_hear_of_each_other() -> None:
    made, rows = network()
    changed = TokenBatch(**{**vars(rows), "numbers": rows.numbers + torch.tensor([[1.0, 0.0, 0.0]])})
    seen: list[torch.Tensor] = []
    made.inter[0].register_forward_hook(lambda _, inputs, output: seen.append(output))
    with torch.inference_mode():
        made(rows)
        made(changed)
    # The first number is memory's; the vector of every other group moves with it.
    assert ((seen[0] - seen[1]).abs().amax(dim=(0, 2)) > 1e-5).all()


def test_an_unseen_string_is_told_by_its_letters() -> None:
    X = frame()
    y = targets(X).mul(np.where(X["dimm"].str.startswith("M393"), 1.0, 3.0), axis=0)
    predictor = NCPP(**SMALL, epochs=40, learning_rate=1e-2).fit(X, y, columns=COLUMNS)
    X = X.assign(dimm="M393-A")
    similar, different = (predictor.predict(X.assign(dimm=name)) for name in ("M393-C", "####"))
    known = predictor.predict(X)
    assert np.abs(np.log(similar / known)).to_numpy().mean() < np.abs(np.log(different / known)).to_numpy().mean()


def test_attention_tells_where_the_network_looks() -> None:
    predictor = fitted(n_intra_blocks=2)
    seen = predictor.attention(frame())
    assert list(seen.intra) == ["memory", "processor", "workload"]
    assert list(seen.intra["processor"].columns) == ["cores", "mhz", "family", "(group)"]
    assert list(seen.inter.index) == ["memory", "processor", "workload"]
    for matrix in (*seen.intra.values(), seen.inter):
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-5)
        assert (matrix.to_numpy() >= 0).all()


def test_attention_of_many_rows_is_the_mean_over_rows() -> None:
    predictor = fitted()
    parts = [predictor.attention(frame().iloc[[row]]).inter.to_numpy() for row in range(6)]
    np.testing.assert_allclose(predictor.attention(frame().iloc[:6]).inter, np.mean(parts, axis=0), atol=1e-6)
