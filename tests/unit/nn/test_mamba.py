"""The selective scan against its recurrence, and what the Mamba block promises."""

from __future__ import annotations

import pytest
import torch
from token_rows import untrained
from torch import nn

from perfcast.nn import mamba as mamba_module
from perfcast.nn.mamba import CausalConvolution, MambaBlock, selective_scan
from perfcast.predictors.neural.attention import MaC


def inputs(rows: int = 5, steps: int = 9) -> list[torch.Tensor]:
    """x, dt, a, b, c for the scan, of four channels and three states."""
    made = torch.Generator().manual_seed(0)
    x, b, c = (torch.randn(rows, steps, size, generator=made, dtype=torch.float64) for size in (4, 3, 3))
    dt = torch.rand(rows, steps, 4, generator=made, dtype=torch.float64)
    a = -4.0 * torch.rand(4, 3, generator=made, dtype=torch.float64)
    return [tensor.requires_grad_() for tensor in (x, dt, a, b, c)]


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


@pytest.mark.parametrize(("chunk_rows", "steps"), [(1, 9), (4, 9), (11, 9), (20, 9), (4, 1)])
def test_fast_scan_and_its_derivatives_are_those_of_the_reference(
    chunk_rows: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = inputs(rows=11, steps=steps)
    monkeypatch.setattr(mamba_module, "_CHUNK_VALUES", chunk_rows * steps * 4 * 3)
    weights = torch.randn(11, steps, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fast, reference = selective_scan(*tensors), reference_scan(*tensors)
    torch.testing.assert_close(fast, reference, rtol=1e-12, atol=1e-12)
    got = torch.autograd.grad((fast * weights).sum(), tensors)
    expected = torch.autograd.grad((reference * weights).sum(), tensors)
    for left, right in zip(got, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-11)


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
    # beyond the reach of the convolution it is the state that remembers
    assert (difference[5:] > 0).all()


def test_state_rates_are_not_decayed() -> None:
    made, _ = untrained(MaC(d_token=8, d_state=3))
    # the optimizer decays what has two dimensions or more
    assert all(p.ndim == 1 for name, p in made.named_parameters() if name.endswith(("log_rate", "through")))
