"""The predictors as scikit-learn estimators, by name."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from perfcast import plugins
from perfcast.errors import UserError
from perfcast.predictors.base import Predictor


def predictor_class(module: ModuleType) -> type[Predictor]:
    """Return the predictor of a plug-in module: its only public Predictor subclass.

    Raises: TypeError when there is none, or more than one.
    """
    found = [
        value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Predictor)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must define exactly one public predictor, found {len(found)}")
    return found[0]


def estimator(name: str, **parameters: Any) -> Predictor:
    """Return an unfitted predictor that follows scikit-learn's conventions: clone, cross-validate, search, pipe it.

    `name` is a module of `perfcast.predictors`, `parameters` are its constructor's; without declared columns `fit`
    takes every column of X as a feature, typed by its pandas type. Raises: UserError when there is no such predictor
    or parameter.
    """
    made = predictor_class(plugins.load("predictors", name))
    known = sorted(made().get_params(deep=False))
    wrong = sorted(set(parameters) - set(known))
    if wrong:
        raise UserError(f"parameters of {name} must be among {', '.join(known) or '(none)'}", f"found {wrong[0]!r}")
    return made(**parameters)
