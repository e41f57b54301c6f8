"""Loss and optimizer of every network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from perfcast.training.loop import TrainingConfig

VALIDATION_BATCH_SIZE = 1024

VALIDATION_METRIC = "validation_error"
"""Mean absolute error of the standardized validation targets: what training stops by."""


def masked_huber(predicted: Tensor, target: Tensor, delta: float) -> Tensor:
    """Return the mean Huber loss over the measured targets, 0 when none was measured; NaN marks the others.

    Shapes: target (rows, outputs); predicted the same, or (rows, k, outputs) of an implicit ensemble. Every member of
    an ensemble is compared with the target separately: this is the mean of their losses, not the loss of their mean.
    """
    if predicted.ndim == target.ndim + 1:
        target = target.unsqueeze(1).expand_as(predicted)
    measured = ~torch.isnan(target)
    error = predicted - torch.where(measured, target, predicted.detach())
    loss = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=delta)
    return (loss * measured).sum() / measured.sum().clamp(min=1)


def measured_error(predicted: Tensor, target: Tensor) -> tuple[Tensor, int]:
    """Return the mean absolute error of the measured targets, NaN without any, and their number."""
    measured = ~torch.isnan(target)
    return (predicted - target)[measured].abs().mean(), int(measured.sum())


def make_optimizer(network: nn.Module, config: TrainingConfig, steps: int) -> tuple[torch.optim.Optimizer, OneCycleLR]:
    """Return AdamW with a one-cycle rate; biases, norms and embeddings of one row are not decayed."""
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)
    return optimizer, OneCycleLR(optimizer, max_lr=config.learning_rate, total_steps=steps + 1, pct_start=0.15)
