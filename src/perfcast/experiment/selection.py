"""Predictors constructed from conf, with the tuned values of each fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfcast.config.predictor_conf import PredictorConf
from perfcast.predictors.factory import predictor_class
from perfcast.predictors.predictor import Predictor
from perfcast.utils.errors import UserError

PredictorFactory = Callable[[int], Predictor]
"""Constructs a predictor from a seed."""


def make_predictor(
    target: str, arguments: Mapping[str, Any], seed: int | None, machine: Mapping[str, Any] | None = None
) -> Predictor:
    """Construct a predictor by the dotted path of its class; a `seed` becomes its `random_state`.

    `machine` (conf/trainer) is handed to predictors that train on one: accelerator and devices.
    """
    seeded = dict(arguments) if seed is None else {**arguments, "random_state": seed}
    predictor = predictor_class(target)(**seeded)
    if machine and hasattr(predictor, "trainer_config"):
        predictor.trainer_config = type(predictor.trainer_config)(**machine)
    return predictor


def predictor_factory(
    conf: PredictorConf, arguments: Mapping[str, Any], machine: Mapping[str, Any]
) -> PredictorFactory:
    """Return the factory of the predictor with one set of hyperparameters."""

    def make(seed: int) -> Predictor:
        predictor = make_predictor(conf.target, arguments, seed if conf.stochastic else None, machine)
        predictor.without_columns = tuple(conf.without_columns)
        return predictor

    return make


def list_fits(make: PredictorFactory) -> tuple[list[Predictor], PredictorFactory]:
    """Return a list, and a function that constructs predictors as `make` does and adds them to the list."""
    fits: list[Predictor] = []

    def remember(seed: int) -> Predictor:
        fits.append(make(seed))
        return fits[-1]

    return fits, remember


def fold_factories(
    conf: PredictorConf, preset: str, machine: Mapping[str, Any], key: tuple[str, ...], folds: int
) -> list[PredictorFactory]:
    """Return the factory of each fold: with its own tuned values where the split is tuned, else that of the preset.

    `key` is (dataset, split), and then the split that it is a learning-curve split of, if any: see `tuned_settings`.
    Raises: UserError when the split was tuned for another number of folds.
    """
    tuned = conf.tuned_settings(preset, *key)
    if not tuned:
        return [predictor_factory(conf, conf.arguments(preset), machine)] * folds
    if len(tuned) != folds:
        raise UserError(
            f"the tuned values of {'/'.join(key)} must be one entry for each of its {folds} folds",
            f"conf/predictor has {len(tuned)}",
            "search again with benchmarks/tune.py, or remove them",
        )
    return [predictor_factory(conf, setting["tuned"], machine) for setting in tuned]
