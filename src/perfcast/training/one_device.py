"""The training loop of one process on one device: the same steps as with Lightning, without its imports.

Lightning imports compilers, distributed training and plots: 3 s of processor time, more than many trainings here take.
It still trains on several devices. `test_both_loops_give_equal_weights` holds both loops to the same bits.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from perfcast.nn.token_batch import TokenBatch, mask_inputs
from perfcast.training.devices import TrainerConfig
from perfcast.training.loop import BatchLoader, TrainingConfig
from perfcast.training.optimization import (
    VALIDATION_BATCH_SIZE,
    VALIDATION_METRIC,
    make_optimizer,
    masked_huber,
    measured_error,
)
from perfcast.training.progress import EPOCH_LISTENERS


def find_device(trainer_config: TrainerConfig) -> torch.device | None:
    """Return the one device that trains, None where Lightning trains: several devices, or an accelerator it knows."""
    if trainer_config.processes > 1:
        return None
    if trainer_config.accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu") if trainer_config.accelerator in ("cpu", "auto") else None


class _Mean:
    """Weighted mean, summed in single precision as Lightning does."""

    def __init__(self) -> None:
        self.total, self.weight = torch.zeros(()), 0

    def add(self, value: Tensor, weight: int) -> None:
        # added where it was computed: fetched here, every step would wait for a GPU
        self.total = self.total + value.detach() * weight
        self.weight += weight

    def result(self, name: str) -> dict[str, float]:
        return {name: float(self.total / self.weight)} if self.weight else {}


def train_on_one_device(
    network: nn.Module,
    training: TokenBatch,
    validation: TokenBatch | None,
    config: TrainingConfig,
    *,
    seed: int,
    device: torch.device,
) -> tuple[list[dict[str, float]], int]:
    """Train `network` in place. Returns: the learning curve by epoch, and the best validation epoch, 0 without one.

    With validation rows the network ends with the weights of its best epoch, and training stops `patience` epochs
    after it. The other arguments are those of `train`.
    """
    # all rows at once: tables are small beside a GPU's memory, and copies of every batch are not
    training, validation = training.to(device), None if validation is None else validation.to(device)
    loader = BatchLoader(training, config.batch_size, shuffle_seed=seed, limit=config.steps_per_epoch)
    epochs = config.count_epochs(len(training))
    network.to(device)
    optimizer, rates = make_optimizer(network, config, steps=epochs * len(loader))
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    history: list[dict[str, float]] = []
    best_epoch, best_error, waited = 0, float("inf"), 0
    best_weights: dict[str, Tensor] | None = None
    for epoch in range(1, epochs + 1):
        network.train()
        loss = _Mean()
        for batch in loader:
            predicted = network(mask_inputs(batch, config.mask_rate))
            step_loss = masked_huber(predicted, batch.targets, config.huber_delta)
            optimizer.zero_grad()
            step_loss.backward()
            nn.utils.clip_grad_norm_(parameters, config.gradient_clip_val)
            optimizer.step()
            rates.step()
            loss.add(step_loss, len(batch))
        metrics = {} if validation is None else _validate(network, validation, config)
        rate = float(optimizer.param_groups[0]["lr"])
        history.append({"epoch": epoch, "learning_rate": rate, **metrics, **loss.result("train_loss")})
        for listener in EPOCH_LISTENERS:
            listener(history[-1])
        if VALIDATION_METRIC not in metrics:
            continue
        waited += 1
        if metrics[VALIDATION_METRIC] < best_error:
            best_epoch, best_error, waited = epoch, metrics[VALIDATION_METRIC], 0
            best_weights = copy.deepcopy(network.state_dict())
        if waited >= config.patience:
            break
    if best_weights is not None:
        network.load_state_dict(best_weights)
    return history, best_epoch


def _validate(network: nn.Module, validation: TokenBatch, config: TrainingConfig) -> dict[str, float]:
    """Return the validation loss, and the validation error where a target was measured."""
    network.eval()
    loss, error = _Mean(), _Mean()
    with torch.inference_mode():
        for batch in BatchLoader(validation, VALIDATION_BATCH_SIZE):
            predicted = network(batch)
            loss.add(masked_huber(predicted, batch.targets, config.huber_delta), len(batch))
            mean, count = measured_error(predicted, batch.targets)
            if count:
                error.add(mean, count)
    return {**loss.result("validation_loss"), **error.result(VALIDATION_METRIC)}
