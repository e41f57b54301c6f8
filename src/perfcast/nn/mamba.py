"""Mamba blocks over the tokens of a group-attention network: MaC (MambaCPU, arXiv 2410.19297)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.group_attention import GroupAttentionNetwork

_CHUNK_VALUES = 2**20
"""Rows are scanned in chunks of about this many numbers of state: few enough for the processor cache."""
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
        steps = x.shape[1]
        past = len(self.weight) - 1
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
        channels = _EXPANSION * d_token
        self.d_state = d_state
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

    def related(self, tokens: Tensor) -> Tensor:
        """Return the tokens as attention reads them."""
        following: Tensor = self.mamba(tokens)
        return following


def selective_scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return y of the selective scan of Mamba, with a derivative of its own and few sequential steps.

    Every channel carries a state of N numbers along the sequence:

        h[t] = exp(dt[t] a) h[t-1] + dt[t] x[t] b[t],    y[t] = sum over N of c[t] h[t]

    `dt`, `b` and `c` depend on the input, `a` does not. As in the publication (arXiv 2312.00752), states are not kept
    for the derivative but computed again: moving them costs more.
    Shapes: x and dt (rows, steps, channels); a (channels, N), negative; b and c (rows, steps, N); y as x.
    """
    # Rows last: every operation then runs along contiguous rows, whatever it broadcasts over.
    u, dt, b, c = (tensor.permute(1, 2, 0) for tensor in (x * dt, dt, b, c))
    y: Tensor = _Scan.apply(a.t().unsqueeze(2), u.unsqueeze(1), dt.unsqueeze(1), b.unsqueeze(2), c.unsqueeze(2))
    return y.squeeze(1).permute(2, 0, 1)


class _Scan(torch.autograd.Function):
    """The scan over states of shape (steps, N, channels, rows).

    Shapes: a (N, channels, 1); u = x dt and dt (steps, 1, channels, rows); b and c (steps, N, 1, rows); result as u.
    """

    @staticmethod
    def forward(context: Any, a: Tensor, *inputs: Tensor) -> Tensor:
        context.save_for_backward(a, *inputs)
        y = torch.empty_like(inputs[0])
        memory = _memory(2, a, inputs[0])
        for chunk_y, *chunk in _chunks(_rows(a, y), y, *inputs):
            u, dt, b, c = (tensor.contiguous() for tensor in chunk)
            decay, states = _shaped(memory, a, u)
            torch.mul(b, u, out=states)
            _carry(states, decay, a, dt)
            chunk_y.copy_(states.mul_(c).sum(dim=1, keepdim=True))
        return y

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        a, *inputs = context.saved_tensors
        to_a, (to_u, to_dt, to_b, to_c) = torch.zeros_like(a), map(torch.empty_like, inputs)
        memory = _memory(4, a, inputs[0])
        results = to_u, to_dt, to_b, to_c
        for chunk in _chunks(_rows(a, to_u), gradients[0], *inputs, *results):
            to_y, u, dt, b, c = (tensor.contiguous() for tensor in chunk[:5])
            chunk_to_u, chunk_to_dt, chunk_to_b, chunk_to_c = chunk[5:]
            decay, states, to_state, product = _shaped(memory, a, u)
            torch.mul(b, u, out=states)
            _carry(states, decay, a, dt)
            # The derivative to a state: by its own output, and by the next state.
            torch.mul(c, to_y, out=to_state)
            for later, earlier, left in zip(
                reversed(to_state[1:].unbind()),
                reversed(to_state[:-1].unbind()),
                reversed(decay[1:].unbind()),
                strict=True,
            ):
                earlier.addcmul_(left, later)
            chunk_to_c.copy_(torch.mul(states, to_y, out=product).sum(dim=2, keepdim=True))
            chunk_to_b.copy_(torch.mul(to_state, u, out=product).sum(dim=2, keepdim=True))
            chunk_to_u.copy_(torch.mul(to_state, b, out=product).sum(dim=1, keepdim=True))
            # From here on the derivative to the exponent dt a; the first step has no state to decay.
            to_exponent = to_state[1:].mul_(states[:-1]).mul_(decay[1:])
            chunk_to_dt[:1].zero_()
            chunk_to_dt[1:].copy_(torch.mul(to_exponent, a, out=product[1:]).sum(dim=1, keepdim=True))
            to_a += torch.mul(to_exponent, dt[1:], out=product[1:]).sum(dim=(0, 3)).unsqueeze(2)
        return to_a, to_u, to_dt, to_b, to_c


def _carry(states: Tensor, decay: Tensor, a: Tensor, dt: Tensor) -> None:
    """Add to what each step puts into `states` what it keeps of the earlier ones; `decay` is filled in."""
    torch.mul(dt, a, out=decay).exp_()
    for earlier, later, left in zip(states[:-1].unbind(), states[1:].unbind(), decay[1:].unbind(), strict=True):
        later.addcmul_(left, earlier)


def _rows(a: Tensor, u: Tensor) -> int:
    """Return the rows of a chunk."""
    return min(u.shape[-1], max(1, _CHUNK_VALUES // (len(u) * a.numel())))


def _chunks(rows: int, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(tensor.split(rows, dim=-1) for tensor in tensors), strict=True)


def _memory(count: int, a: Tensor, u: Tensor) -> Tensor:
    """Return memory for `count` tensors of states of one chunk.

    Taken anew for every chunk it cost a third of the time.
    """
    return u.new_empty(count, len(u) * a.numel() * _rows(a, u))


def _shaped(memory: Tensor, a: Tensor, u: Tensor) -> list[Tensor]:
    shape = (len(u), *a.shape[:2], u.shape[-1])
    return [tensor[: math.prod(shape)].view(shape) for tensor in memory]
