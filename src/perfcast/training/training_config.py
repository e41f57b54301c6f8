"""Hyperparameters that every neural predictor shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingConfig:
    """Hyperparameters of training, the base of every neural estimator.

    linear_skip         add a ridge regression per task, which the network corrects
    early_stopping      choose the number of epochs on the validation rows
    refit               train anew on all rows for the chosen number of epochs
    epochs              passes over the training rows; more when the table is so small that `min_steps` is not reached
    min_steps           optimizer steps at least, so that a small table is learned too
    batch_size          rows per step
    learning_rate       highest rate of the one-cycle preset (Smith & Topin 2018)
    weight_decay        of AdamW, on matrices alone
    huber_delta         where the loss turns from squared to absolute, in standardized units
    gradient_clip_val   largest norm of the gradient
    patience            epochs without a better validation error before training stops
    mask_rate           share of the inputs that training masks
    random_state        seed of the weights, the order of rows and the noise
    """

    linear_skip: bool = True
    early_stopping: bool = True
    refit: bool = True
    epochs: int = 40
    min_steps: int = 200
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 0.02
    huber_delta: float = 0.3
    gradient_clip_val: float = 1.0
    patience: int = 12
    mask_rate: float = 0.02
    random_state: int = 0

    def count_epochs(self, rows: int) -> int:
        """Return the number of epochs for a table of `rows` rows."""
        steps_per_epoch = math.ceil(rows / self.batch_size)
        return max(self.epochs, math.ceil(self.min_steps / steps_per_epoch))

    def training_config(self) -> TrainingConfig:
        """Return the training hyperparameters alone, without those of a subclass."""
        return TrainingConfig(**{name: getattr(self, name) for name in TRAINING_FIELDS})

    def network_options(self) -> dict[str, Any]:
        """Return the hyperparameters that a subclass adds: those of its network."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in TRAINING_FIELDS}


TRAINING_FIELDS = tuple(field.name for field in fields(TrainingConfig))
