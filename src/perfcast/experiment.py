"""One training job: a predictor on every fold and seed of a split, and the final model on all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.config import PredictorConf
from perfcast.errors import UserError
from perfcast.predictors.base import Predictor
from perfcast.schema import Role, Table, Tag

_MIN_PEERS = 5
"""Fewest measured peers for which a training label may be called an outlier."""


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


def make_predictor(
    module: str, arguments: Mapping[str, Any], seed: int | None, machine: Mapping[str, Any] | None = None
) -> Predictor:
    """Construct a predictor by module name; `seed` becomes its `random_state` when it is stochastic.

    `machine` (conf/trainer) is handed to predictors that train on one: accelerator and devices.
    """
    seeded = dict(arguments) if seed is None else {**arguments, "random_state": seed}
    predictor = predictor_class(plugins.load("predictors", module))(**seeded)
    if machine and hasattr(predictor, "machine"):
        predictor.machine = type(predictor.machine)(**machine)
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
    conf: PredictorConf, schedule: str, machine: Mapping[str, Any], question: tuple[str, str], folds: int
) -> Candidates:
    """Return what each fold chooses among: its own tuned setting where the question is tuned, else every candidate.

    `question` is (data set, split). Raises: UserError when it was tuned for another number of folds.
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
    """One fitted predictor with its forecast of the test rows."""

    fold: int
    seed: int
    choice: Choice
    predictor: Predictor
    test: pd.DataFrame


def label_outliers(table: Table, rows: np.ndarray, threshold: float | None) -> np.ndarray:
    """Mark training rows whose score is implausible beside its peers: same TASK and IDENTITY, at least five of them.

    Shapes: `rows` and the answer are boolean over the table's rows; marked rows are a subset of `rows`.
    `threshold` is the largest absolute natural logarithm of score over the peers' median; None marks nothing. Only the
    given rows are looked at, so no test score takes part. Source: counted on the published results, where deviations
    beyond 0.3 are mistakes of the entry or crippled configurations, all on the low side.
    """
    marked = np.zeros(len(table.frame), dtype=bool)
    if threshold is None or not rows.any():
        return marked
    peers = table.select(tag=Tag.TASK) + table.select(tag=Tag.IDENTITY)
    frame = table.frame.loc[rows]
    for target in table.select(role=Role.TARGET):
        logs = np.log(frame[target])
        groups = logs.groupby([frame[name] for name in peers], dropna=False)
        far = (logs - groups.transform("median")).abs() > threshold
        marked[np.flatnonzero(rows)] |= (far & (groups.transform("count") >= _MIN_PEERS)).to_numpy()
    return marked


def measured_rows(table: Table) -> np.ndarray:
    """Mark the rows that have at least one score, (n,) bool."""
    return np.asarray(table.frame[table.select(role=Role.TARGET)].notna().any(axis=1), dtype=bool)


def training_rows(table: Table, part: np.ndarray, label_outlier: float | None) -> np.ndarray:
    """Mark the rows of one fold that a predictor may learn from: measured, in training, label not an outlier."""
    rows = np.isin(part, ["train", "valid"]) & measured_rows(table)
    return np.asarray(rows & ~label_outliers(table, rows, label_outlier), dtype=bool)


def judged_rows(table: Table, part: np.ndarray) -> np.ndarray:
    """Mark the test rows of one fold that forecasts are judged by: all but those that an UNJUDGED column marks."""
    testing = part == "test"
    for name in table.select(tag=Tag.UNJUDGED):
        testing &= (table.frame[name] != 1).to_numpy()
    return np.asarray(testing, dtype=bool)


def run_folds(
    table: Table,
    folds: pd.DataFrame,
    candidates: Candidates,
    seeds: Sequence[int],
    label_outlier: float | None,
) -> Iterator[Fitted]:
    """Fit on the training rows of every fold and seed and forecast its test rows, one at a time.

    Every fold chooses among its candidates by itself, inside its training part: in a cross-validation the inner
    validation rows of one fold are test rows of another.
    Shapes: `folds` has one string column per fold, values train | valid | test | unused, in the table's row order.
    """
    before: Mapping[str, Make] | None = None
    for fold, name in enumerate(folds.columns):
        part = folds[name].to_numpy()
        training = training_rows(table, part, label_outlier)
        testing = judged_rows(table, part)
        own = candidates(fold)
        # a sole setting that folds share needs no choice; its inner error is measured once, to compare predictors by
        if len(own) > 1 or own is not before:
            choice = choose(table, part, own, seeds[0], label_outlier)
        before = own
        for seed in seeds:
            predictor = _fit(own[choice.candidate](seed), table, training, part[training] == "valid")
            yield Fitted(fold, seed, choice, predictor, as_predictions(predictor, table, testing, fold, seed))


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
    valid = part == "valid"
    training = training_rows(table, np.where(valid, "held out", part), label_outlier)
    if not valid.any() or not training.any():
        return None
    predictor = _fit(make(seed), table, training, None)
    forecast = as_predictions(predictor, table, valid, 0, seed)
    if forecast.empty:
        return None
    return float((forecast["predicted"] / forecast["measured"] - 1).abs().mean() * 100)


def _inputs(table: Table, rows: np.ndarray) -> pd.DataFrame:
    return table.frame.loc[rows, [column.name for column in table.columns if column.role is not Role.TARGET]]


def _fit(predictor: Predictor, table: Table, rows: np.ndarray, valid: np.ndarray | None) -> Predictor:
    # a score that no training row has cannot be learned, and is not forecast
    targets = table.frame.loc[rows, table.select(role=Role.TARGET)].dropna(axis=1, how="all")
    times = table.select(tag=Tag.TIME)
    when = table.frame.loc[rows, times[0]] if times else None
    return predictor.fit(_inputs(table, rows), targets, columns=table.columns, valid=valid, when=when)


def fit_all(
    table: Table, candidates: Mapping[str, Make], seed: int, label_outlier: float | None
) -> tuple[Predictor, Choice]:
    """Fit on every measured row, for forecasts of machines that nobody has measured; choose by the last year."""
    part = np.full(len(table.frame), "train", dtype=object)
    rows = training_rows(table, part, label_outlier)
    valid = _last_year(table, rows)
    choice = Choice(next(iter(candidates)), {})
    if valid is not None and len(candidates) > 1:
        part[np.flatnonzero(rows)[valid]] = "valid"
        choice = choose(table, part, candidates, seed, label_outlier)
    return _fit(candidates[choice.candidate](seed), table, rows, valid), choice


def _last_year(table: Table, rows: np.ndarray) -> np.ndarray | None:
    """Mark the last twelve months of the given rows, where the data set knows time."""
    names = table.select(tag=Tag.TIME)
    if not names:
        return None
    when = table.frame.loc[rows, names[0]]
    return np.asarray(when > when.max() - pd.DateOffset(months=12), dtype=bool)


def error_summary(predictions: pd.DataFrame) -> dict[str, float]:
    """Return MAPE and MedAPE in per cent, per task and averaged over the tasks, under `<task>/<metric>` names."""
    errors = (predictions["predicted"] / predictions["measured"] - 1).abs() * 100
    by_task = errors.groupby(predictions["task"])
    summary: dict[str, float] = {}
    for metric, values in {"mape": by_task.mean(), "medape": by_task.median()}.items():
        summary[f"mean/{metric}"] = float(values.mean())
        summary |= {f"{task}/{metric}": float(value) for task, value in values.items()}
    return summary


def as_predictions(predictor: Predictor, table: Table, rows: np.ndarray, fold: int, seed: int) -> pd.DataFrame:
    """Return long predictions: one line per row and target that was measured, and that training has for the task."""
    frame, X = table.frame.loc[rows], _inputs(table, rows)
    forecast, asked = predictor.predict(X), predictor.asked(X)
    parts = []
    for index, target in enumerate(forecast.columns):
        parts.append(
            pd.DataFrame(
                {
                    "row": frame[table.one(Tag.ROW)],
                    "task": frame[table.one(Tag.TASK)],
                    "entity": frame[table.one(Tag.ENTITY)],
                    "fold": fold,
                    "seed": seed,
                    "target": target,
                    "measured": frame[target].where(asked[:, index]),
                    "predicted": forecast[target],
                }
            )
        )
    long = pd.concat(parts, ignore_index=True)
    return long[long["measured"].notna()].reset_index(drop=True)
