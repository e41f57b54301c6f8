"""One training job: a predictor on every fold and seed of a split, and the final model on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.config import PredictorConf
from perfcast.errors import UserError
from perfcast.estimators import predictor_class
from perfcast.fitting import as_predictions, fit
from perfcast.parts import judged_rows, last_year, training_rows
from perfcast.predictors.base import Predictor
from perfcast.rehearsal import first_error, rehearsals_of, rehearse
from perfcast.schema import Table


def make_predictor(
    module: str, arguments: Mapping[str, Any], seed: int | None, machine: Mapping[str, Any] | None = None
) -> Predictor:
    """Construct a predictor by module name; `seed` becomes its `random_state` when it is stochastic.

    `machine` (conf/trainer) is handed to predictors that train on one: accelerator and devices.
    """
    seeded = dict(arguments) if seed is None else {**arguments, "random_state": seed}
    predictor = predictor_class(plugins.load("predictors", module))(**seeded)
    if machine and hasattr(predictor, "trainer_config"):
        predictor.trainer_config = type(predictor.trainer_config)(**machine)
    return predictor


Make = Callable[[int], Predictor]
"""Constructs a predictor from a seed."""


def maker(conf: PredictorConf, arguments: Mapping[str, Any], machine: Mapping[str, Any]) -> Make:
    """Return what constructs the predictor under one setting."""

    def make(seed: int) -> Predictor:
        predictor = make_predictor(conf.module, arguments, seed if conf.stochastic else None, machine)
        predictor.without_columns = tuple(conf.without_columns)
        return predictor

    return make


def makers(conf: PredictorConf, schedule: str, machine: Mapping[str, Any]) -> dict[str, Make]:
    """Return what constructs the predictor under each of its settings."""
    return {name: maker(conf, arguments, machine) for name, arguments in conf.settings(schedule).items()}


Candidates = Callable[[int], Mapping[str, Make]]
"""Gives a fold, by its number, what it chooses among."""


def fold_makers(
    conf: PredictorConf, schedule: str, machine: Mapping[str, Any], question: tuple[str, ...], folds: int
) -> Candidates:
    """Return what each fold chooses among: its own tuned setting where the question is tuned, else every candidate.

    `question` is (data set, split), and then the split that it is a form of, if any: see `tuned_settings`.
    Raises: UserError when it was tuned for another number of folds.
    """
    tuned = conf.tuned_settings(schedule, *question)
    if not tuned:
        shared = makers(conf, schedule, machine)
        return lambda fold: shared
    if len(tuned) != folds:
        raise UserError(
            f"the tuned values of {'/'.join(question)} must be one entry for each of its {folds} folds",
            f"conf/predictor has {len(tuned)}",
            "run perfcast tune with --write again, or remove them",
        )
    own = [{name: maker(conf, arguments, machine) for name, arguments in setting.items()} for setting in tuned]
    return own.__getitem__


@dataclass(frozen=True)
class Choice:
    """The setting that a training part chose, and the inner validation MAPE (%) of each one; None: not measured."""

    candidate: str
    valid_mape: dict[str, float | None]


@dataclass(frozen=True)
class Fitted:
    """One fitted predictor with its forecast of the test rows, and the forecasts that its fold rehearsed."""

    fold: int
    seed: int
    choice: Choice
    predictor: Predictor
    test: pd.DataFrame
    rehearsed: pd.DataFrame


def run_folds(
    table: Table,
    folds: pd.DataFrame,
    candidates: Candidates,
    seeds: Sequence[int],
    label_outlier: float | None,
    *,
    most_rehearsals: int = 1,
) -> Iterator[Fitted]:
    """Fit on the training rows of every fold and seed and forecast its test rows, one at a time.

    Every fold chooses among its candidates and rehearses by itself, inside its training part: in a cross-validation
    the inner validation rows of one fold are test rows of another. Rehearsals are held under the first seed.
    Shapes: `folds` has one string column per fold, values train | valid | test | unused, in the table's row order.
    """
    for fold, name in enumerate(folds.columns):
        part = folds[name].to_numpy()
        training = training_rows(table, part, label_outlier)
        testing = judged_rows(table, part)
        own = candidates(fold)
        choice = choose(table, part, own, seeds[0], label_outlier) if len(own) > 1 else None
        chosen = choice.candidate if choice else next(iter(own))
        held = rehearsals_of(table, part, label_outlier, most_rehearsals)
        rehearsed = rehearse(table, held, own[chosen], seeds[0], fold)
        choice = choice or Choice(chosen, {chosen: first_error(rehearsed)})
        for seed in seeds:
            predictor = fit(own[chosen](seed), table, training, part[training] == "valid")
            forecast = as_predictions(predictor, table, testing, fold, seed)
            yield Fitted(fold, seed, choice, predictor, forecast, rehearsed)


def choose(
    table: Table, part: np.ndarray, candidates: Mapping[str, Make], seed: int, label_outlier: float | None
) -> Choice:
    """Choose the candidate with the smallest inner validation error; the first one where nothing can be measured."""
    errors = {name: inner_error(table, part, make, seed, label_outlier) for name, make in candidates.items()}
    measured = {name: error for name, error in errors.items() if error is not None}
    return Choice(min(measured, key=measured.__getitem__) if measured else next(iter(candidates)), errors)


def inner_error(table: Table, part: np.ndarray, make: Make, seed: int, label_outlier: float | None) -> float | None:
    """Return the mean absolute percentage error on the inner validation rows after training on the other ones.

    This is what predictors are compared by when one is chosen: the same kind of question as the split's, asked inside
    the training part. None when the split sets no rows aside.
    """
    return first_error(rehearse(table, rehearsals_of(table, part, label_outlier, 1), make, seed, 0))


def fit_all(
    table: Table, candidates: Mapping[str, Make], seed: int, label_outlier: float | None
) -> tuple[Predictor, Choice]:
    """Fit on every measured row, for forecasts of machines that nobody has measured; choose by the last year."""
    part = np.full(len(table.frame), "train", dtype=object)
    rows = training_rows(table, part, label_outlier)
    valid = last_year(table, rows)
    choice = Choice(next(iter(candidates)), {})
    if valid is not None and len(candidates) > 1:
        part[np.flatnonzero(rows)[valid]] = "valid"
        choice = choose(table, part, candidates, seed, label_outlier)
    return fit(candidates[choice.candidate](seed), table, rows, valid), choice


def error_summary(predictions: pd.DataFrame) -> dict[str, float]:
    """Return MAPE and MedAPE in per cent, per task and averaged over the tasks, under `<task>/<metric>` names."""
    errors = (predictions["predicted"] / predictions["measured"] - 1).abs() * 100
    by_task = errors.groupby(predictions["task"])
    summary: dict[str, float] = {}
    for metric, values in {"mape": by_task.mean(), "medape": by_task.median()}.items():
        summary[f"mean/{metric}"] = float(values.mean())
        summary |= {f"{task}/{metric}": float(value) for task, value in values.items()}
    return summary
