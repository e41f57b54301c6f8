"""Implicit ensemble `tabm`: shared matrices, members that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from token_rows import COLUMNS, frame, targets, untrained
from torch import nn

from perfcast.nn.mlp import TabMNetwork
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.tabm import TabM
from perfcast.training.lightning_modules import masked_huber

SMALL: dict[str, Any] = {"k": 4, "d_embedding": 4, "d_block": 16, "n_blocks": 2, "batch_size": 32, "min_steps": 0}


def network(**changes: Any) -> tuple[TabMNetwork, TokenBatch]:
    """An untrained network whose heads are not zero, and rows for it."""
    made, rows = untrained(TabM(**{**SMALL, "dropout": 0.0, "mask_rate": 0.0, **changes}), 2)
    nn.init.normal_(made.head.weight)
    return made, rows


def test_tabm_returns_members_in_training_and_their_mean_afterwards() -> None:
    made, rows = network()
    members = made.train()(rows)
    assert members.shape == (64, 4, 2)
    torch.testing.assert_close(made.eval()(rows), members.mean(dim=1))


def test_tabm_members_differ_before_the_heads() -> None:
    made, rows = network()
    hidden = made.backbone(made.view(made.flatten(rows)))
    assert (hidden[:, 0] - hidden[:, 1]).abs().mean() > 0.1 * hidden.abs().mean()
    made.head.weight.data[:] = made.head.weight.data[:1]
    assert made.train()(rows).std(dim=1).mean() > 0.01


def test_tabm_shares_matrices() -> None:
    small, large = (network(k=k)[0] for k in (2, 32))
    for small_block, large_block in zip(small.backbone.blocks, large.backbone.blocks, strict=True):
        assert small_block[0].weight.shape == large_block[0].weight.shape
        assert (small_block[0].r.shape[0], large_block[0].r.shape[0]) == (2, 32)


def test_tabm_scales_a_column_once_per_member() -> None:
    made, _ = network()
    factors = made.backbone.blocks[0][0].r
    parts = factors.split(made.sizes, dim=1)
    # A constant, three numbers, their absence; then three embedded numbers and two categories.
    assert [part.shape[1] for part in parts] == [1] * 7 + [4] * 5
    assert all((part == part[:, :1]).all() for part in parts)
    assert len(factors.unique()) == 4 * 12


def test_tabm_head_has_the_gradient_of_its_member() -> None:
    made, rows = network()
    made.train()
    masked_huber(made(rows), rows.targets, 0.5).backward()
    together = made.head.weight.grad.clone()
    made.zero_grad()
    masked_huber(made(rows)[:, 2], rows.targets, 0.5).backward()
    torch.testing.assert_close(together[2], made.head.weight.grad[2] / 4)
    assert (made.head.weight.grad[[0, 1, 3]] == 0).all()


def test_tabm_members_are_accurate_and_differ() -> None:
    X = frame()
    predictor = TabM(**SMALL, epochs=40, dropout=0.0, mask_rate=0.0).fit(X, targets(X), columns=COLUMNS)
    assert np.abs(np.log(predictor.predict(X)["score"] / targets(X))).mean() < 0.05
    with torch.inference_mode():
        members = predictor.network_.train()(predictor.encode_inputs(X)).squeeze(-1)
        predictor.network_.eval()
    assert members.std(dim=1).mean() > 1e-3
    assert (members - members.mean(dim=1, keepdim=True)).abs().mean() < 0.5


def test_training_by_the_mean_of_losses_is_in_the_history() -> None:
    X = frame()
    predictor = TabM(**SMALL, epochs=1, learning_rate=1e-12, weight_decay=0.0, linear_skip=False)
    predictor.fit(X, targets(X), columns=COLUMNS)
    # Heads at zero: every member's loss is that of the center, and so is their mean.
    logs = np.log(targets(X))
    levels = logs.groupby(X["suite"]).transform("mean"), logs.groupby(X["suite"]).transform("std", ddof=0)
    error = np.abs((logs - levels[0]) / levels[1])
    expected = np.where(error < 0.3, error**2 / 2, 0.3 * (error - 0.15)).mean()
    np.testing.assert_allclose(predictor.history_[0]["train_loss"], expected, rtol=1e-4)
