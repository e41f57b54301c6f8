"""The predictors as scikit-learn estimators, by class name."""

from __future__ import annotations

import inspect

from perfcast import plugins
from perfcast.predictors.predictor import Predictor
from perfcast.utils.errors import UserError, unknown_name


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
