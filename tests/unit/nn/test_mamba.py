"""The selective scan against its recurrence, and what the Mamba block promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn import mamba as mamba_module
from perfcast.nn.mamba import CausalConvolution, MambaBlock, MambaGroupNetwork, selective_scan
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.attention import MaC
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("memory", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
)
SMALL: dict[str, Any] = {
    "d_token": 8,
    "d_state": 3,
    "d_bottleneck": 4,
    "d_block": 16,
    "n_frequencies": 2,
    "min_steps": 0,
}


def inputs(
    rows: int = 5, steps: int = 9, channels: int = 4, states: int = 3, dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    """x, dt, a, b, c for the scan."""
    made = torch.Generator().manual_seed(0)
    x, b, c = (torch.randn(rows, steps, size, generator=made, dtype=dtype) for size in (channels, states, states))
    dt = torch.rand(rows, steps, channels, generator=made, dtype=dtype)
    a = -4.0 * torch.rand(channels, states, generator=made, dtype=dtype)
    return [tensor.requires_grad_() for tensor in (x, dt, a, b, c)]


def literal(x: np.ndarray, dt: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The recurrence, number by number."""
    y = np.zeros_like(x)
    for row in range(x.shape[0]):
        for channel in range(x.shape[2]):
            for n in range(a.shape[1]):
                state = 0.0
                for t in range(x.shape[1]):
                    state = np.exp(dt[row, t, channel] * a[channel, n]) * state
                    state += dt[row, t, channel] * x[row, t, channel] * b[row, t, n]
                    y[row, t, channel] += c[row, t, n] * state
    return y


def reference_scan(
    x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    """Return y by the recurrence as it is written, differentiated by torch: the reference."""
    state = x.new_zeros(x.shape[0], x.shape[2], a.shape[1])
    outputs = []
    for t in range(x.shape[1]):
        decay = torch.exp(dt[:, t, :, None] * a)
        state = decay * state + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
        outputs.append((state * c[:, t, None, :]).sum(dim=-1))
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("scan", [reference_scan, selective_scan])
@pytest.mark.parametrize("steps", [1, 9])
def test_scan_is_the_literal_recurrence(scan: Any, steps: int) -> None:
    tensors = inputs(steps=steps)
    expected = literal(*(tensor.detach().numpy() for tensor in tensors))
    np.testing.assert_allclose(scan(*tensors).detach().numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk_rows", [1, 4, 11, 20])
def test_fast_scan_and_its_derivatives_are_those_of_the_reference(
    chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, tensors = 11, inputs(rows=11)
    monkeypatch.setattr(mamba_module, "_CHUNK_VALUES", chunk_rows * 9 * 4 * 3)
    weights = torch.randn(rows, 9, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fast, reference = selective_scan(*tensors), reference_scan(*tensors)
    torch.testing.assert_close(fast, reference, rtol=1e-12, atol=1e-12)
    got = torch.autograd.grad((fast * weights).sum(), tensors)
    expected = torch.autograd.grad((reference * weights).sum(), tensors)
    for left, right in zip(got, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-11)


def test_derivatives_of_the_fast_scan_are_those_of_finite_differences() -> None:
    assert torch.autograd.gradcheck(selective_scan, inputs(rows=2, steps=4, channels=3, states=2))


def test_fast_scan_in_single_precision_is_near_the_reference_in_double() -> None:
    tensors = inputs(steps=114)
    single = selective_scan(*(tensor.float() for tensor in tensors))
    torch.testing.assert_close(single.double(), reference_scan(*tensors), rtol=1e-4, atol=1e-4)


def test_convolution_is_depthwise_and_causal() -> None:
    torch.manual_seed(0)
    layer, x = CausalConvolution(6, 4), torch.randn(2, 7, 6)
    kernel = layer.weight.t().unsqueeze(1)
    expected = nn.functional.conv1d(nn.functional.pad(x.transpose(1, 2), (3, 0)), kernel, layer.bias, groups=6)
    torch.testing.assert_close(layer(x), expected.transpose(1, 2))


def test_mamba_block_is_causal() -> None:
    torch.manual_seed(0)
    block, tokens = MambaBlock(8, 3), torch.randn(2, 12, 8)
    changed = tokens.clone()
    changed[:, 5] += 1.0
    with torch.inference_mode():
        difference = (block(tokens) - block(changed)).abs().amax(dim=(0, 2))
    assert (difference[:5] == 0).all()
    # Beyond the reach of the convolution it is the state that remembers.
    assert (difference[5:] > 0).all()


def test_untrained_step_lengths_are_within_their_range() -> None:
    torch.manual_seed(0)
    lengths = nn.functional.softplus(MambaBlock(64, 8).step.bias)
    assert lengths.min() >= 0.99e-3
    assert lengths.max() <= 1.01e-1
    assert lengths.max() / lengths.min() > 10


def frame(rows: int = 64) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "cores": rng.choice([4.0, 8.0, 16.0, 32.0], rows),
            "family": rng.choice(["Alpha", "Beta"], rows),
            "memory": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(1, 2, rows)),
            "suite": rng.choice(["rate", "speed"], rows),
        }
    )


def network() -> tuple[MambaGroupNetwork, TokenBatch]:
    """An untrained network whose head is not zero, and rows for it."""
    torch.manual_seed(0)
    encoder = TokenEncoder().fit(frame(), COLUMNS)
    made = MaC(**SMALL).build_network(encoder.spec, 2)
    assert isinstance(made, MambaGroupNetwork)
    nn.init.normal_(made.head[-1].weight)
    return made.eval(), TokenBatch.from_tokens(encoder.transform(frame()), np.zeros((64, 2)))


def test_every_parameter_has_a_gradient() -> None:
    made, rows = network()
    made(rows).pow(2).sum().backward()
    idle = [name for name, p in made.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert idle == []


def test_state_rates_are_not_decayed() -> None:
    made, _ = network()
    # The optimizer decays what has two dimensions or more.
    assert all(p.ndim == 1 for name, p in made.named_parameters() if name.endswith(("log_rate", "through")))


def test_learns_what_depends_on_two_groups() -> None:
    X = frame(256)
    # No straight line per suite: the family turns the effect of the memory round.
    sign = np.where(X["family"] == "Alpha", 1.0, -1.0)
    y = pd.Series(np.exp(sign * 2 * (X["memory"].fillna(1.5) - 1.5)), name="score")
    predictor = MaC(**{**SMALL, "epochs": 40, "batch_size": 64, "dropout": 0.0, "learning_rate": 1e-2})
    predicted = predictor.fit(X, y, columns=COLUMNS).predict(X)["score"]
    assert np.abs(np.log(predicted / y)).mean() < 0.3 * np.abs(np.log(y)).mean()
