"""AdamW with a one-cycle rate, without `torch.optim`, whose steps import torch's compiler: a second of every job."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from perfcast.training.loop import TrainingConfig
from perfcast.training.optimization import WARM_UP, parameter_groups

_BETA2, _EPS = 0.999, 1e-8
_RISE, _FALL = 25.0, 1e4
"""The highest rate in units of the first one, and the first in units of the last."""
_MIN_MOMENTUM, _MAX_MOMENTUM = 0.85, 0.95


@dataclass(frozen=True)
class OneCycle:
    """Learning rate and momentum by step: the rate rises for a share of the steps, then falls; momentum mirrors it.

    The values are those of `torch.optim.lr_scheduler.OneCycleLR` for `steps + 1` steps (Smith & Topin 2018).
    """

    highest: float
    steps: int

    def at(self, step: int) -> tuple[float, float]:
        """Return rate and momentum after so many steps."""
        first = self.highest / _RISE
        turn = WARM_UP * (self.steps + 1) - 1
        if step <= turn:
            return _ease(first, self.highest, step / turn), _ease(_MAX_MOMENTUM, _MIN_MOMENTUM, step / turn)
        share = (step - turn) / (self.steps - turn)
        return _ease(self.highest, first / _FALL, share), _ease(_MIN_MOMENTUM, _MAX_MOMENTUM, share)


def _ease(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


class FusedAdamW:
    """The optimizer of `make_optimizer` with its schedule, by the kernel that torch fuses.

    `learning_rate` is the rate of the next step.
    """

    def __init__(self, network: nn.Module, config: TrainingConfig, steps: int) -> None:
        self._cycle, self._step = OneCycle(config.learning_rate, steps), 0
        self._groups = [(group["params"], group["weight_decay"]) for group in parameter_groups(network, config)]
        self.parameters: list[Tensor] = [parameter for parameters, _ in self._groups for parameter in parameters]
        self._moments: dict[Tensor, tuple[Tensor, Tensor, Tensor]] = {}
        self.learning_rate, self._momentum = self._cycle.at(0)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient, and go on to the next rate."""
        for parameters, weight_decay in self._groups:
            changed = [parameter for parameter in parameters if parameter.grad is not None]
            if not changed:
                continue
            moments = [self._moments.setdefault(parameter, _zero_moments(parameter)) for parameter in changed]
            averages, squares, counts = (list(values) for values in zip(*moments, strict=True))
            torch._foreach_add_(counts, 1)
            torch._fused_adamw_(
                changed,
                [parameter.grad for parameter in changed],
                averages,
                squares,
                [],
                counts,
                lr=self.learning_rate,
                beta1=self._momentum,
                beta2=_BETA2,
                weight_decay=weight_decay,
                eps=_EPS,
                amsgrad=False,
                maximize=False,
            )
        self._step += 1
        self.learning_rate, self._momentum = self._cycle.at(self._step)


def _zero_moments(parameter: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the average of gradients, that of their squares, and the number of steps."""
    count = torch.zeros((), dtype=torch.float32, device=parameter.device)
    return torch.zeros_like(parameter), torch.zeros_like(parameter), count
