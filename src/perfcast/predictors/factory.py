"""The predictors as scikit-learn estimators, by class name, and predictors that are made of others."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfcast import plugins
from perfcast.predictors.predictor import Predictor, read_predictor
from perfcast.utils.errors import UserError, unknown_name

TARGET = "_target_"
WITHOUT_COLUMNS = "without_columns"
Nested = Mapping[str, Any]
"""Predictor as conf has it: its class under `_target_`, its hyperparameters, and feature columns that it does not see
under `without_columns`, by shell patterns."""


def predictor_class(target: str) -> type[Predictor]:
    """Return the predictor class of a dotted path inside perfcast or a domain.

    Raises: UserError when there is no such class, or it cannot be constructed as a predictor.
    """
    loaded = plugins.load_class(target, "_target_ of a predictor")
    if not issubclass(loaded, Predictor) or inspect.isabstract(loaded):
        lacks = " and ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
        raise UserError(
            f"_target_ of a predictor must be a subclass of {Predictor.__module__}.Predictor with _fit and _predict",
            f"{target!r} {f'has no {lacks}' if lacks else 'is another kind of class'}",
        )
    return loaded


def find_predictor(name: str) -> type[Predictor]:
    """Return the predictor class of a class name such as `Ridge` or of its dotted path.

    Raises: UserError when there is no such predictor.
    """
    if "." in name:
        return predictor_class(name)
    classes = plugins.classes("predictors")
    if name not in classes:
        raise unknown_name("an estimator", name, classes)
    return predictor_class(classes[name])


@dataclass(kw_only=True, eq=False, repr=False)
class Composite(Predictor):
    """Predictor made of others, which its hyperparameters name; it hands them its seed and the devices for training."""

    trainer_config = dict[str, Any]()  # noqa: RUF012
    # Arguments of TrainerConfig. No annotation, so no hyperparameter: it is neither cloned nor saved.

    random_state: int = 0

    def _construct(self, nested: Mapping[str, Nested | None]) -> dict[str, Predictor]:
        """Return unfitted predictors by name, without those that are None."""
        return {name: self._construct_one(conf) for name, conf in nested.items() if conf is not None}

    def _construct_one(self, conf: Nested) -> Predictor:
        kind = predictor_class(str(conf.get(TARGET)))
        arguments = {name: value for name, value in conf.items() if name not in (TARGET, WITHOUT_COLUMNS)}
        if "random_state" in inspect.signature(kind).parameters:
            arguments = {"random_state": self.random_state, **arguments}
        predictor = kind(**arguments)
        predictor.without_columns = tuple(conf.get(WITHOUT_COLUMNS, ()))
        if self.trainer_config and hasattr(predictor, "trainer_config"):
            predictor.trainer_config = type(predictor.trainer_config)(**self.trainer_config)
        return predictor


def save_nested(folder: Path, predictors: Mapping[str, Predictor]) -> None:
    """Save fitted predictors in a folder each, by name."""
    for name, predictor in predictors.items():
        predictor.save(folder / name)


def load_nested(folder: Path, names: Iterable[str]) -> dict[str, Predictor]:
    """Read the predictors of `save_nested`; the digests of the outer predictor are theirs too."""
    return {name: read_predictor(folder / name) for name in names}
