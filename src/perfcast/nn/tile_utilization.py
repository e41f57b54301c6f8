"""Network of the share of a tile's peak that is reached, as in NeuSight (arXiv 2407.13853)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

_MIN_SHARE = 1e-3
"""Least utilization: a logarithm needs one."""
_MAX_LOST = 0.9
"""Largest share of the utilization that a single wave loses."""


class TileUtilization(nn.Module):
    """Multilayer perceptron whose two outputs give the utilization alpha - beta / waves, and a constant of a launch.

    alpha is between 0 and 1 and beta a share of it: more waves hide more of the latency of memory, up to alpha.
    Shapes: numbers (rows, features), waves and light (rows,) -> logarithms of the time (rows,). `light` are logarithms
    of the time of all waves at the peaks.
    """

    def __init__(self, n_features: int, d_block: int, n_blocks: int, log_launch: float = 0.0) -> None:
        super().__init__()
        widths = [n_features, *[d_block] * n_blocks]
        layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 2))
        self.log_launch = nn.Parameter(torch.tensor(log_launch))

    def forward(self, numbers: Tensor, waves: Tensor, light: Tensor) -> Tensor:
        """Return the logarithms of the time."""
        alpha, share = torch.sigmoid(self.layers(numbers)).unbind(dim=1)
        used = torch.clamp(alpha * (1 - _MAX_LOST * share / waves), min=_MIN_SHARE)
        return torch.logaddexp(self.log_launch, light - torch.log(used))


def symmetric_error(log_ratio: Tensor) -> Tensor:
    """Return the mean symmetric relative error, |p - y| / ((p + y) / 2), of logarithms of p / y."""
    return (2 * torch.tanh(log_ratio.abs() / 2)).mean()
