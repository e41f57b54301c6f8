"""The meta-learned network of HELP, as functions of its parameters: forward, modulation, and adaptation to a task."""

from __future__ import annotations

import torch
from torch import Tensor

Parameters = dict[str, Tensor]

_HEAD = ("head1", "head2", "head3")
_INNER_RATE = 1e-3
_MODULATION = 0.01
"""Initial learning rates of the adaptation, and scale of the modulation of weights (the authors' code)."""


def initial_parameters(inputs: int, embedding: int, hidden_size: int, generator: torch.Generator) -> Parameters:
    """Return the parameters of the network, of its adaptation rates (rate.*) and of the modulation (code.*)."""
    head = 2 * hidden_size
    network = _init_layers(
        {
            "item1": (inputs, hidden_size),
            "item2": (hidden_size, hidden_size),
            "task1": (embedding, hidden_size),
            "task2": (hidden_size, hidden_size),
            "head1": (head, head),
            "head2": (head, head),
            "head3": (head, 1),
        },
        generator,
    )
    rates = {f"rate.{name}": torch.full_like(value, _INNER_RATE) for name, value in network.items()}
    codes = _init_layers({"code1": (embedding, 10), "code2": (10, 2 * modulation_size(hidden_size))}, generator)
    return {**network, **rates, **codes}


def forward(network: Parameters, items: Tensor, task: Tensor) -> Tensor:
    """Return the predicted values of items for tasks.

    Shapes: network (tasks, ..), items (tasks, n, inputs), task (tasks, embedding) -> (tasks, n).
    """
    item = torch.relu(_linear(network, "item2", torch.relu(_linear(network, "item1", items))))
    device = torch.relu(_linear(network, "task2", torch.relu(_linear(network, "task1", task[:, None, :]))))
    hidden = torch.cat([item, device.expand(-1, items.shape[1], -1)], dim=-1)
    hidden = torch.relu(_linear(network, "head2", torch.relu(_linear(network, "head1", hidden))))
    return _linear(network, "head3", hidden)[:, :, 0]


def adapt(  # noqa: PLR0917 - the description of a task, in the order of its rows
    parameters: Parameters, items: Tensor, values: Tensor, task: Tensor, noise: Tensor, steps: int
) -> tuple[Parameters, Tensor]:
    """Return a network per task after `steps` gradient steps on its support rows, and the modulations' divergences.

    Gradients flow to `parameters` where these require them, through the steps as well. Noise 0 gives the mean.
    Shapes: items (tasks, n, inputs), values (tasks, n), task (tasks, embedding), noise (tasks, modulation)
    -> (tasks, ..), (tasks,).
    Source: Lee et al., arXiv 2106.08630, section 3.3; the learned rates are Meta-SGD's (Li et al., arXiv 1707.09835).
    """
    is_training = any(value.requires_grad for value in parameters.values())
    shared = {name: value for name, value in parameters.items() if not name.startswith(("rate.", "code"))}
    network = {name: value.expand(len(task), *value.shape) for name, value in shared.items()}
    network, divergence = _modulate(parameters, network, task, noise)
    for _ in range(steps):
        if not is_training:
            network = {name: value.detach().requires_grad_() for name, value in network.items()}
        loss = ((forward(network, items, task) - values) ** 2).mean(dim=1).sum()
        gradients = torch.autograd.grad(loss, list(network.values()), create_graph=is_training)
        pairs = zip(network.items(), gradients, strict=True)
        network = {name: value - parameters[f"rate.{name}"] * gradient for (name, value), gradient in pairs}
    return network, divergence


def modulation_size(hidden_size: int) -> int:
    """Return the number of values that modulate the network."""
    return 3 * (2 * hidden_size + 1)


def _modulate(parameters: Parameters, network: Parameters, task: Tensor, noise: Tensor) -> tuple[Parameters, Tensor]:
    """Scale the head's weights and shift its biases by a code drawn for each task."""
    hidden = torch.relu(task @ parameters["code1.weight"].T + parameters["code1.bias"])
    mean, raw = (hidden @ parameters["code2.weight"].T + parameters["code2.bias"]).chunk(2, dim=1)
    spread = torch.nn.functional.softplus(raw) + 1e-6
    code = mean + spread * noise
    divergence = 0.5 * (spread**2 + mean**2 - 1 - 2 * torch.log(spread)).sum(dim=1)
    count = (code.shape[1] - len(_HEAD)) // len(_HEAD)
    modulated = dict(network)
    for index, name in enumerate(_HEAD):
        factor = 1 + _MODULATION * code[:, None, index * count : (index + 1) * count]
        modulated[f"{name}.weight"] = network[f"{name}.weight"] * factor
        modulated[f"{name}.bias"] = network[f"{name}.bias"] + _MODULATION * code[:, len(_HEAD) * count + index, None]
    return modulated, divergence


def _init_layers(sizes: dict[str, tuple[int, int]], generator: torch.Generator) -> Parameters:
    """Return weights and biases, uniform within 1 / sqrt(inputs), of layers with (inputs, outputs)."""
    return {
        f"{name}.{kind}": (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
        * (1 / max(1, inputs) ** 0.5)
        for name, (inputs, outputs) in sizes.items()
        for kind, shape in (("weight", (outputs, inputs)), ("bias", (outputs,)))
    }


def _linear(network: Parameters, name: str, inputs: Tensor) -> Tensor:
    """Apply a layer of every task. Shapes: (tasks, n, inputs) -> (tasks, n, outputs)."""
    weight, bias = network[f"{name}.weight"], network[f"{name}.bias"]
    return torch.baddbmm(bias[:, None, :], inputs, weight.transpose(1, 2))
