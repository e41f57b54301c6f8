"""The meta-learned network of HELP, as functions of its parameters: forward, modulation, and adaptation to a task."""

from __future__ import annotations

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
    """Return the forecasts of items for tasks: network (tasks, ..), items (tasks, n, inputs), task (tasks, embedding).

    Shapes: (tasks, n).
    """
    item = torch.relu(_linear(network, "item2", torch.relu(_linear(network, "item1", items))))
    told = torch.relu(_linear(network, "task2", torch.relu(_linear(network, "task1", task[:, None, :]))))
    hidden = torch.cat([item, told.expand(-1, items.shape[1], -1)], dim=-1)
    hidden = torch.relu(_linear(network, "head2", torch.relu(_linear(network, "head1", hidden))))
    return _linear(network, "head3", hidden)[:, :, 0]


def adapt(  # noqa: PLR0917 - what a task is, in the order of its rows
    parameters: Parameters, items: Tensor, values: Tensor, task: Tensor, noise: Tensor, steps: int
) -> tuple[Parameters, Tensor]:
    """Return a network per task after `steps` gradient steps on its known rows, and the modulations' divergences.

    Gradients flow to `parameters` where these require them, through the steps as well.
    Shapes: items (tasks, n, inputs), values (tasks, n), task (tasks, embedding), noise (tasks, modulation): 0 for its
    mean -> (tasks, ..), (tasks,).
    Source: Lee et al., arXiv 2106.08630, section 3.3; the learned rates are Meta-SGD's (Li et al., arXiv 1707.09835).
    """
    learning = any(value.requires_grad for value in parameters.values())
    shared = {name: value for name, value in parameters.items() if not name.startswith(("rate.", "code"))}
    network = {name: value.expand(len(task), *value.shape) for name, value in shared.items()}
    network, divergence = _modulated(parameters, network, task, noise)
    for _ in range(steps):
        if not learning:
            network = {name: value.detach().requires_grad_() for name, value in network.items()}
        loss = ((forward(network, items, task) - values) ** 2).mean(dim=1).sum()
        moved = torch.autograd.grad(loss, list(network.values()), create_graph=learning)
        pairs = zip(network.items(), moved, strict=True)
        network = {name: value - parameters[f"rate.{name}"] * slope for (name, value), slope in pairs}
    return network, divergence


def modulation_size(width: int) -> int:
    """Return how many numbers modulate the network."""
    return 3 * (2 * width + 1)


def _modulated(parameters: Parameters, network: Parameters, task: Tensor, noise: Tensor) -> tuple[Parameters, Tensor]:
    """Scale the head's weights and shift its biases by a code drawn for each task."""
    hidden = torch.relu(task @ parameters["code1.weight"].T + parameters["code1.bias"])
    mean, raw = (hidden @ parameters["code2.weight"].T + parameters["code2.bias"]).chunk(2, dim=1)
    spread = torch.nn.functional.softplus(raw) + 1e-6
    code = mean + spread * noise
    divergence = 0.5 * (spread**2 + mean**2 - 1 - 2 * torch.log(spread)).sum(dim=1)
    count = (code.shape[1] - len(_HEAD)) // len(_HEAD)
    moved = dict(network)
    for place, name in enumerate(_HEAD):
        factor = 1 + _MODULATION * code[:, None, place * count : (place + 1) * count]
        moved[f"{name}.weight"] = network[f"{name}.weight"] * factor
        moved[f"{name}.bias"] = network[f"{name}.bias"] + _MODULATION * code[:, len(_HEAD) * count + place, None]
    return moved, divergence


def _layer(inputs: int, outputs: int, generator: torch.Generator) -> Parameters:
    bound = 1 / max(1, inputs) ** 0.5
    shapes = {"weight": (outputs, inputs), "bias": (outputs,)}
    return {
        part: (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * bound
        for part, shape in shapes.items()
    }


def _linear(network: Parameters, name: str, inputs: Tensor) -> Tensor:
    """Apply a layer of every task: (tasks, n, inputs) -> (tasks, n, outputs)."""
    weight, bias = network[f"{name}.weight"], network[f"{name}.bias"]
    return torch.baddbmm(bias[:, None, :], inputs, weight.transpose(1, 2))
