"""The optimizer without torch's compiler makes the steps of torch's own."""

import copy

import pytest
import torch
from torch import nn

from perfcast.training.fused_adamw import FusedAdamW, OneCycle
from perfcast.training.loop import TrainingConfig
from perfcast.training.optimization import make_optimizer


class Partly(nn.Module):
    """A network with a layer that has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Linear(3, 3)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.used(rows)


@pytest.mark.parametrize("steps", [2, 13, 40])
def test_steps_rates_and_weights_are_those_of_torch(steps: int) -> None:
    config = TrainingConfig(learning_rate=0.05, weight_decay=0.3)
    torch.manual_seed(0)
    network = Partly()
    reference = copy.deepcopy(network)
    optimizer = FusedAdamW(network, config, steps)
    expected, rates = make_optimizer(reference, config, steps)
    for _ in range(steps):
        rows = torch.randn(16, 4)
        for member, steps_of in ((network, optimizer), (reference, expected)):
            steps_of.zero_grad()
            member(rows).square().mean().backward()
            steps_of.step()
        rates.step()
        assert optimizer.learning_rate == expected.param_groups[0]["lr"]
        assert all(map(torch.equal, network.parameters(), reference.parameters()))


def test_the_rate_rises_to_the_highest_one_and_falls_below_the_first() -> None:
    cycle = OneCycle(0.1, 100)
    rates = [cycle.at(step)[0] for step in range(101)]
    assert max(rates) == pytest.approx(0.1, rel=1e-3)
    assert rates.index(max(rates)) == pytest.approx(14, abs=1)
    assert rates[-1] < rates[0] < max(rates)
