"""Mamba blocks over the tokens of a group-attention network: MaC (MambaCPU, arXiv 2410.19297)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.group_attention import GroupAttentionNetwork
from perfcast.nn.selective_scan import selective_scan
from perfcast.nn.token_batch import TokenBatch

_EXPANSION = 2
_KERNEL = 4
_STEP_RANGE = (1e-3, 1e-1)
"""Step lengths dt of an untrained block, spread evenly in logarithms; all three are the values of the publication."""


class CausalConvolution(nn.Module):
    """Depthwise convolution along the steps: every channel by itself, from its own past alone.

    Shapes: (rows, steps, channels) to the same.
    """

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        bound = kernel**-0.5
        self.weight = nn.Parameter(torch.empty(kernel, channels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Convolve; the last row of the weights meets the present step."""
        steps, past = x.shape[1], len(self.weight) - 1
        padded = nn.functional.pad(x, (0, 0, past, 0))
        result: Tensor = self.bias
        # A few shifted sums: for so few channels torch's grouped convolution has more to prepare than to compute.
        for shift, weight in enumerate(self.weight):
            result = torch.addcmul(result, padded[:, shift : shift + steps], weight)
        return result


class MambaBlock(nn.Module):
    """Pre-norm selective state space block, residual (Gu & Dao 2023, arXiv 2312.00752).

    A token sees the tokens before it; their content decides which of them the state keeps, and for how long.
    Shapes: (rows, steps, d_token) to the same.
    """

    def __init__(self, d_token: int, d_state: int) -> None:
        super().__init__()
        channels, self.d_state = _EXPANSION * d_token, d_state
        self.rank = math.ceil(d_token / 16)
        self.norm = nn.RMSNorm(d_token, eps=1e-5)
        self.enter = nn.Linear(d_token, 2 * channels, bias=False)
        self.convolution = CausalConvolution(channels, _KERNEL)
        self.select = nn.Linear(channels, self.rank + 2 * d_state, bias=False)
        self.step = nn.Linear(self.rank, channels)
        with torch.no_grad():
            low, high = map(math.log, _STEP_RANGE)
            lengths = torch.exp(low + torch.rand(channels) * (high - low))
            # softplus(bias) = length
            self.step.bias.copy_(lengths + torch.log(-torch.expm1(-lengths)))
        # In one dimension, because the optimizer decays parameters of two dimensions toward zero.
        self.log_rate = nn.Parameter(torch.arange(1.0, 1.0 + d_state).log().repeat(channels))
        self.through = nn.Parameter(torch.ones(channels))
        self.leave = nn.Linear(channels, d_token, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Relate every token to those before it."""
        x, gate = self.enter(self.norm(tokens)).chunk(2, dim=-1)
        x = nn.functional.silu(self.convolution(x))
        step, b, c = self.select(x).split([self.rank, self.d_state, self.d_state], dim=-1)
        dt = nn.functional.softplus(self.step(step))
        a = -torch.exp(self.log_rate).view(-1, self.d_state)
        y = torch.addcmul(selective_scan(x, dt, a, b, c), x, self.through)
        related: Tensor = tokens + self.leave(y * nn.functional.silu(gate))
        return related


class MambaGroupNetwork(GroupAttentionNetwork):
    """Feature tokens, Mamba blocks over all of them in order of group and name, then group attention and the head.

    The token of a group comes last in it, so it can gather the group's content. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self, spec: TokenSpec, n_outputs: int, *, d_token: int, d_state: int, n_mamba_blocks: int, **attention: Any
    ) -> None:
        super().__init__(spec, n_outputs, d_token=d_token, **attention)
        self.mamba = nn.Sequential(*(MambaBlock(d_token, d_state) for _ in range(n_mamba_blocks)))

    def _tokens(self, batch: TokenBatch) -> Tensor:
        tokens: Tensor = self.mamba(super()._tokens(batch))
        return tokens
