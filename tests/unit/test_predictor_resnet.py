"""What makes `resnet` the published network, and what a batch of one row does to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._resnet import BatchNorm, ResNetNetwork
from perfcast.predictors.resnet import ResNet
from perfcast.schema import Column, Kind, Role, Tag
from perfcast.training.data import Rows

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {"embedding": 4, "width": 16, "hidden": 24, "batch_rows": 32, "least_steps": 0}


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


def network(**changes: Any) -> tuple[ResNetNetwork, Rows]:
    """A network that has seen one batch and whose head is not zero, and rows for it."""
    torch.manual_seed(0)
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made = ResNet(**{**SMALL, **changes}).network(encoder, 1)
    nn.init.normal_(made.head[-1].weight)
    rows = Rows.of(encoder.transform(frame()), np.zeros((64, 1)))
    made.train()(rows)
    return made.eval(), rows


def standardised(norm: BatchNorm, x: torch.Tensor) -> torch.Tensor:
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def test_forecast_is_the_formula_of_the_paper() -> None:
    made, rows = network(hidden_dropout=0.5, residual_dropout=0.5)
    with torch.inference_mode():
        x = made.enter(made.flat(rows))
        for norm, first, _, _, second, _ in made.blocks:
            x = x + torch.relu(standardised(norm, x) @ first.weight.T + first.bias) @ second.weight.T + second.bias
        norm, _, last = made.head
        expected = torch.relu(standardised(norm, x)) @ last.weight.T + last.bias
        torch.testing.assert_close(made(rows), expected)


def test_both_dropouts_are_in_the_block() -> None:
    for changes in ({"hidden_dropout": 0.5, "residual_dropout": 0.0}, {"hidden_dropout": 0.0, "residual_dropout": 0.5}):
        made, _ = network(**changes)
        block, x = made.blocks[0].train(), torch.randn(8, 16)
        assert not torch.equal(block(x), block(x))
    dropped = (network(residual_dropout=0.5)[0].blocks[0].train()(torch.randn(64, 16)) == 0).float().mean()
    assert 0.4 < dropped < 0.6


def test_numbers_come_as_they_are() -> None:
    made, rows = network()
    flat = made.flat(rows)
    torch.testing.assert_close(flat[:, 1:4], rows.numbers)
    torch.testing.assert_close(flat[:, 4:7], rows.missing)
    assert flat.shape[1] == 1 + 3 + 3 + 2 * 4 == sum(made.widths)


def test_a_training_batch_of_one_row_takes_the_running_statistics() -> None:
    norm, x = BatchNorm(3), torch.randn(9, 3, generator=torch.Generator().manual_seed(0)) * 5 + 2
    norm(x)
    mean = norm.running_mean.clone()
    torch.testing.assert_close(norm(x[:1]), standardised(norm, x[:1]))
    assert torch.equal(norm.running_mean, mean)


def test_a_batch_of_several_rows_is_standardised_by_its_own() -> None:
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)) * 5 + 2
    out = BatchNorm(3)(x)
    torch.testing.assert_close(out.mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std(dim=0, correction=0), torch.ones(3), atol=1e-5, rtol=0)


def test_one_row_left_over_for_the_last_batch_does_no_harm() -> None:
    X = frame(65)
    forecast = ResNet(**SMALL, epochs=20).fit(X, targets(X), columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(forecast / targets(X))).mean() < 0.2


def test_every_parameter_is_on_the_path_to_the_forecast() -> None:
    made, rows = network()
    made(rows).pow(2).sum().backward()
    assert [name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() == 0] == []
