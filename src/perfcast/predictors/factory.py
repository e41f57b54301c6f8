"""The predictors as scikit-learn estimators, by class name."""

from __future__ import annotations

import inspect

from perfcast.predictors.predictor import Predictor
from perfcast.utils import plugins
from perfcast.utils.errors import UserError, unknown_name


def predictor_class(target: str) -> type[Predictor]:
    """Return the predictor class of a dotted path inside `perfcast.predictors`.

    Raises: UserError when there is no such class, or it cannot be constructed as a predictor.
    """
    loaded = plugins.load_class("predictors", target, "_target_ of a predictor")
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
    paths = plugins.class_paths("predictors")
    by_name = {path.rpartition(".")[2]: path for path in paths}
    if name not in paths and name not in by_name:
        raise unknown_name("an estimator", name, by_name)
    return predictor_class(by_name.get(name, name))
