"""The meta-learned network of HELP, as functions of its parameters: forward, modulation, and adaptation to a task."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Parameters = dict[str, Tensor]

_HEAD = ("head1", "head2", "head3")
_INNER_RATE = 1e-3
_MODULATION = 0.01
"""First learning rates of the inner steps, and how far the modulation moves weights (the authors' code)."""


def initial(inputs: int, embedding: int, width: int, generator: torch.Generator) -> Parameters:
    """Return the parameters of the network, of its inner learning rates (rate.*) and of the modulation (code.*)."""
    sizes = {
        "item1": (inputs, width),
        "item2": (width, width),
        "task1": (embedding, width),
        "task2": (width, width),
        "head1": (2 * width, 2 * width),
        "head2": (2 * width, 2 * width),
        "head3": (2 * width, 1),
    }
    own = {name: _layer(*size, generator) for name, size in sizes.items()}
    network = {f"{name}.{part}": value for name, pair in own.items() for part, value in pair.items()}
    rates = {f"rate.{name}": torch.full_like(value, _INNER_RATE) for name, value in network.items()}
    codes = {"code1": (embedding, 10), "code2": (10, 2 * 3 * (2 * width + 1))}
    coding = {f"{name}.{part}": v for name, size in codes.items() for part, v in _layer(*size, generator).items()}
    return {**network, **rates, **coding}


def forward(network: Parameters, items: Tensor, task: Tensor) -> Tensor:
    """Return the forecast of items for a task: (n, inputs), (embedding,) -> (n,)."""
    item = torch.relu(_linear(network, "item2", torch.relu(_linear(network, "item1", items))))
    told = torch.relu(_linear(network, "task2", torch.relu(_linear(network, "task1", task))))
    hidden = torch.cat([item, told.expand(len(items), -1)], dim=-1)
    hidden = torch.relu(_linear(network, "head2", torch.relu(_linear(network, "head1", hidden))))
    return _linear(network, "head3", hidden)[:, 0]


def adapt(  # noqa: PLR0917 - as torch.func.vmap maps them
    parameters: Parameters, items: Tensor, values: Tensor, task: Tensor, noise: Tensor, steps: int
) -> tuple[Parameters, Tensor]:
    """Return the network after `steps` gradient steps on a task's known rows, and the modulation's divergence.

    Shapes: items (n, inputs), values (n,), task (embedding,), noise (modulation,): 0 for its mean.
    Source: Lee et al., arXiv 2106.08630, section 3.3; the learned rates are Meta-SGD's (Li et al., arXiv 1707.09835).
    """
    network = {name: value for name, value in parameters.items() if not name.startswith(("rate.", "code"))}
    network, divergence = _modulated(parameters, network, task, noise)
    slope: Callable[..., Parameters] = torch.func.grad(_loss)
    for _ in range(steps):
        moved = slope(network, items, values, task)
        network = {name: value - parameters[f"rate.{name}"] * moved[name] for name, value in network.items()}
    return network, divergence


def modulation_size(width: int) -> int:
    """Return how many numbers modulate the network."""
    return 3 * (2 * width + 1)


def _loss(network: Parameters, items: Tensor, values: Tensor, task: Tensor) -> Tensor:
    return ((forward(network, items, task) - values) ** 2).mean()


def _modulated(parameters: Parameters, network: Parameters, task: Tensor, noise: Tensor) -> tuple[Parameters, Tensor]:
    """Scale the head's weights and shift its biases by a code drawn for the task."""
    coded = _linear(parameters, "code2", torch.relu(_linear(parameters, "code1", task)))
    mean, raw = coded.chunk(2)
    spread = torch.nn.functional.softplus(raw) + 1e-6
    code = mean + spread * noise
    divergence = 0.5 * (spread**2 + mean**2 - 1 - 2 * torch.log(spread)).sum()
    count = (len(code) - len(_HEAD)) // len(_HEAD)
    moved = dict(network)
    for place, name in enumerate(_HEAD):
        factor = 1 + _MODULATION * code[place * count : (place + 1) * count]
        moved[f"{name}.weight"] = network[f"{name}.weight"] * factor
        moved[f"{name}.bias"] = network[f"{name}.bias"] + _MODULATION * code[len(_HEAD) * count + place]
    return moved, divergence


def _layer(inputs: int, outputs: int, generator: torch.Generator) -> Parameters:
    bound = 1 / max(1, inputs) ** 0.5
    shapes = {"weight": (outputs, inputs), "bias": (outputs,)}
    return {
        part: (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * bound
        for part, shape in shapes.items()
    }


def _linear(parameters: Parameters, name: str, inputs: Tensor) -> Tensor:
    return torch.nn.functional.linear(inputs, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
