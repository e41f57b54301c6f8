"""Model selection: predictors constructed from conf, and the candidate with the smallest inner validation error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.fitting import Backtest, first_error, run_backtests
from perfcast.predictors.factory import predictor_class
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Table
from perfcast.utils.errors import UserError

PredictorFactory = Callable[[int], Predictor]
"""Constructs a predictor from a seed."""

FoldCandidates = Callable[[int], Mapping[str, PredictorFactory]]
"""Returns the candidates of a fold, by its number."""


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


def predictor_factories(conf: PredictorConf, preset: str, machine: Mapping[str, Any]) -> dict[str, PredictorFactory]:
    """Return the factories of the predictor by candidate name."""
    return {name: predictor_factory(conf, arguments, machine) for name, arguments in conf.settings(preset).items()}


def fold_candidates(
    conf: PredictorConf, preset: str, machine: Mapping[str, Any], key: tuple[str, ...], folds: int
) -> FoldCandidates:
    """Return the candidates of each fold: its own tuned values where the split is tuned, else all of the predictor's.

    `key` is (dataset, split), and then the split that it is a learning-curve split of, if any: see `tuned_settings`.
    Raises: UserError when the split was tuned for another number of folds.
    """
    tuned = conf.tuned_settings(preset, *key)
    if not tuned:
        shared = predictor_factories(conf, preset, machine)
        return lambda fold: shared
    if len(tuned) != folds:
        raise UserError(
            f"the tuned values of {'/'.join(key)} must be one entry for each of its {folds} folds",
            f"conf/predictor has {len(tuned)}",
            "search again with benchmarks/tune.py, or remove them",
        )
    by_fold = [
        {name: predictor_factory(conf, arguments, machine) for name, arguments in setting.items()} for setting in tuned
    ]
    return by_fold.__getitem__


@dataclass(frozen=True)
class CandidateChoice:
    """The chosen candidate, and the inner validation MAPE (%) of each one; None where it was not measured."""

    candidate: str
    validation_mape: dict[str, float | None]


def select_candidate(
    table: Table, backtests: Sequence[Backtest], candidates: Mapping[str, PredictorFactory], seed: int
) -> CandidateChoice:
    """Select the candidate with the smallest error in the first backtest, the first one where there is none.

    It is an error on the same kind of split, inside the training part.
    """
    errors = {name: first_error(run_backtests(table, backtests, make, seed, 0)) for name, make in candidates.items()}
    measured = {name: error for name, error in errors.items() if error is not None}
    best = min(measured, key=measured.__getitem__) if measured else next(iter(candidates))
    return CandidateChoice(best, errors)
