"""`resnet`: a row as one vector through the published backbone, and batches of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from token_rows import COLUMNS, frame, targets, untrained
from torch import nn

from perfcast.nn.mlp import ResNetNetwork
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.mlp import ResNet

SMALL: dict[str, Any] = {"d_embedding": 4, "d_block": 16, "d_hidden": 24, "batch_size": 32, "min_steps": 0}


def network(**changes: Any) -> tuple[ResNetNetwork, TokenBatch]:
    """A network that has seen one batch and whose head is not zero, and rows for it."""
    made, rows = untrained(ResNet(**{**SMALL, **changes}), 1)
    nn.init.normal_(made.backbone.output.linear.weight)
    made.train()(rows)
    return made.eval(), rows


def standardized(norm: nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def test_resnet_matches_the_formula_of_the_paper() -> None:
    made, rows = network(hidden_dropout=0.5, residual_dropout=0.5)
    with torch.inference_mode():
        x = made.backbone.input_projection(made.flatten(rows))
        for norm, first, _, _, second, _ in made.backbone.blocks:
            x = x + torch.relu(standardized(norm, x) @ first.weight.T + first.bias) @ second.weight.T + second.bias
        norm, _, last = made.backbone.output
        expected = torch.relu(standardized(norm, x)) @ last.weight.T + last.bias
        torch.testing.assert_close(made(rows), expected)


def test_both_dropouts_are_in_the_block() -> None:
    for changes in ({"hidden_dropout": 0.5, "residual_dropout": 0.0}, {"hidden_dropout": 0.0, "residual_dropout": 0.5}):
        made, _ = network(**changes)
        block, x = made.backbone.blocks[0].train(), torch.randn(8, 16)
        assert not torch.equal(block(x), block(x))
    dropped = (network(residual_dropout=0.5)[0].backbone.blocks[0].train()(torch.randn(64, 16)) == 0).float().mean()
    assert 0.4 < dropped < 0.6


def test_resnet_reads_numbers_unchanged() -> None:
    made, rows = network()
    flat = made.flatten(rows)
    torch.testing.assert_close(flat[:, 1:4], rows.numbers)
    torch.testing.assert_close(flat[:, 4:7], rows.missing)
    assert flat.shape[1] == 1 + 3 + 3 + 2 * 4 == sum(made.sizes)


def test_a_training_batch_of_one_row_takes_the_running_statistics() -> None:
    made, rows = network(hidden_dropout=0.0, residual_dropout=0.0)
    means = [norm.running_mean.clone() for norm in made.norms]
    with torch.inference_mode():
        expected = made.eval()(rows.take(slice(0, 1)))
        torch.testing.assert_close(made.train()(rows.take(slice(0, 1))), expected)
    for norm, mean in zip(made.norms, means, strict=True):
        assert torch.equal(norm.running_mean, mean)


def test_a_batch_of_several_rows_is_standardized_by_itself() -> None:
    made, rows = network(hidden_dropout=0.0, residual_dropout=0.0)
    outputs: list[torch.Tensor] = []
    made.norms[0].register_forward_hook(lambda _, inputs, output: outputs.append(output))
    with torch.inference_mode():
        made.train()(rows.take(slice(0, 1)))
        made(rows)
    torch.testing.assert_close(outputs[1].mean(dim=0), torch.zeros(16), atol=1e-5, rtol=0)


def test_resnet_accepts_a_last_batch_of_one_row() -> None:
    X = frame(65)
    predicted = ResNet(**SMALL, epochs=20).fit(X, targets(X), columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(predicted / targets(X))).mean() < 0.2


def test_every_parameter_has_a_gradient() -> None:
    made, rows = network()
    made(rows).pow(2).sum().backward()
    assert [name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() == 0] == []
