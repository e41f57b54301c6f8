"""Tuning: one stored, resumable Optuna study per question, predictor and fold. The only module that knows Optuna."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from filelock import FileLock
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from perfcast import experiment
from perfcast.config import PredictorConf
from perfcast.errors import UserError
from perfcast.schema import Table
from perfcast.space import Choices, Dimension

_LOCK_SECONDS = 60
"""How long a process waits for another one's transaction: folds may be tuned by several processes at once."""

Values = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """What the studies of one data set, split and predictor have in common.

    `name` is <dataset>/<split>/<predictor>. `arguments` are the constructor's under the schedule, `space` is what is
    tried of them, `own` the values they have without tuning. `origin` has digests of the table and the folds.
    """

    name: str
    conf: PredictorConf
    arguments: Values
    space: dict[str, Dimension]
    own: Values
    machine: Mapping[str, Any]
    seed: int
    label_outlier: float | None
    origin: Mapping[str, str]

    def asked(self) -> dict[str, str]:
        """Return digests of what trials must share to be comparable."""
        return {
            "space": _digest({name: dimension.model_dump() for name, dimension in self.space.items()}),
            "params": _digest({**self.arguments, **self.own}),
            "seed": str(self.seed),
            "label_outlier": str(self.label_outlier),
            **self.origin,
        }


@dataclass(frozen=True)
class Outcome:
    """The best of one fold's trials, in inner validation MAPE (%), beside the conf's own params (None: it failed)."""

    values: Values
    inner_mape: float
    own_inner_mape: float | None
    trials: int
    failed: int


def make_search(
    name: str,
    conf: PredictorConf,
    schedule: str,
    *,
    machine: Mapping[str, Any],
    seed: int,
    label_outlier: float | None,
    origin: Mapping[str, str],
) -> Search:
    """Return the search that a predictor's conf describes; what the quick schedule fixes is not searched.

    Raises: UserError when there is nothing to search, or the conf's own value is outside the space.
    """
    predictor = name.rpartition("/")[2]
    where = f"conf/predictor/{predictor}.yaml"
    fixed = conf.quick if schedule == "quick" else {}
    space = {key: dimension for key, dimension in conf.space.items() if key not in fixed}
    if not space:
        raise UserError(
            f"{where} must have a space that the {schedule} schedule leaves open",
            f"{predictor} has none",
            "add `space:`, parameter by parameter",
        )
    arguments = {**conf.params, **fixed}
    known = experiment.make_predictor(conf.module, arguments, None).get_params(deep=False)
    for key, dimension in space.items():
        if key not in known:
            raise UserError(f"space in {where} must name parameters of {conf.module}", f"it has none called {key!r}")
        if not dimension.holds(known[key]):
            raise UserError(
                f"space.{key} in {where} must hold the value tried first, the conf's own",
                f"{known[key]!r} is outside",
                "widen the range or change params",
            )
    own = {key: known[key] for key in space}
    return Search(name, conf, arguments, space, own, machine, seed, label_outlier, origin)


def open_storage(path: Path) -> optuna.storages.RDBStorage:
    """Open the sqlite file of one data set, split and predictor, made first when it is new."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):  # two processes that meet a new file would both make its tables
        return optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": _LOCK_SECONDS}}
        )


def tune_fold(
    search: Search,
    storage: optuna.storages.RDBStorage,
    table: Table,
    part: np.ndarray,
    *,
    fold: int,
    trials: int,
    timeout: float | None,
    report: Callable[[str], None],
) -> None:
    """Go on with one fold's study until it has `trials` finished ones, failed ones included.

    Every trial trains without the fold's inner validation rows and is judged by them; its test rows take no part. The
    first trial is the conf's own params. A killed trial counts nothing and is done again. The next trial follows from
    the seed and the finished ones alone, so a resumed study ends as an uninterrupted one does.

    Shapes: `part` has one of train | valid | test | unused per row of the table. Units: `timeout` in seconds, after
    which no trial begins. Raises: UserError when the study began with another question, or nothing can be measured.
    """
    study = _open_study(search, storage, fold)
    distributions = {name: _distribution(dimension) for name, dimension in search.space.items()}
    started = time.monotonic()
    while (done := len(_finished(study))) < trials and (timeout is None or time.monotonic() - started < timeout):
        if done == 0 and not study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            study.enqueue_trial(search.own)
        study.sampler = _sampler(search.seed, fold, done)
        trial = study.ask(distributions)
        began = time.monotonic()
        told = _try(search, study, trial, table, part)
        shown = " ".join(f"{name}={_shown(value)}" for name, value in trial.params.items())
        report(f"{study.study_name} trial {done + 1} of {trials}: {told} ({time.monotonic() - began:.0f} s) {shown}")


def outcome(search: Search, storage: optuna.storages.RDBStorage, fold: int, trials: int) -> Outcome | None:
    """Return the best of one fold's first `trials` finished trials, the earliest of equal ones; None without any.

    Raises: UserError when all of them failed.
    """
    name = _study_name(search, fold)
    if name not in optuna.get_all_study_names(storage):
        return None
    finished = _finished(_open_study(search, storage, fold))[:trials]
    if not finished:
        return None
    complete = [trial for trial in finished if trial.state == TrialState.COMPLETE]
    if not complete:
        raise UserError(
            f"at least one trial of {name} must succeed",
            f"all {len(finished)} failed, the first because {finished[0].user_attrs['reason']}",
            "repair the cause and remove the study's file",
        )
    best = min(complete, key=lambda trial: (trial.value, trial.number))
    own = finished[0].value
    return Outcome(dict(best.params), best.value, own, len(finished), len(finished) - len(complete))


def _try(search: Search, study: optuna.Study, trial: optuna.Trial, table: Table, part: np.ndarray) -> str:
    """Measure one trial, record it, and tell it in words."""
    make = experiment.maker(search.conf, {**search.arguments, **trial.params}, search.machine)
    try:
        error = experiment.inner_error(table, part, make, search.seed, search.label_outlier)
    except UserError as mistake:
        return _fail(study, trial, str(mistake))
    if error is None:
        raise UserError(
            f"{study.study_name} must have measured inner validation rows to choose by",
            "its split sets none aside",
            "only questions with such rows can be tuned",
        )
    if not math.isfinite(error):
        return _fail(study, trial, f"the inner MAPE is {error}")
    study.tell(trial, error)
    return f"inner MAPE {error:.3f} %, best {study.best_value:.3f} %"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _fail(study: optuna.Study, trial: optuna.Trial, reason: str) -> str:
    trial.set_user_attr("reason", reason)
    study.tell(trial, state=TrialState.FAIL)
    return f"failed: {reason}"


def _study_name(search: Search, fold: int) -> str:
    return f"{search.name}/fold_{fold}"


def _open_study(search: Search, storage: optuna.storages.RDBStorage, fold: int) -> optuna.Study:
    """Open or make a study; refuse one that was asked something else, whose trials do not compare."""
    name, asked = _study_name(search, fold), search.asked()
    study = optuna.create_study(storage=storage, study_name=name, direction="minimize", load_if_exists=True)
    before = study.user_attrs.get("asked")
    if before is None:
        study.set_user_attr("asked", asked)
    elif before != asked:
        changed = [what for what in asked if before.get(what) != asked[what]]
        raise UserError(
            f"study {name} must go on with what it began with",
            f"changed since: {', '.join(changed)}",
            "undo the change, remove the study's file, or name another --out",
        )
    return study


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the trials that came to an end, in order: neither the running ones nor those that a kill left so."""
    trials: list[optuna.trial.FrozenTrial] = study.get_trials(
        deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL)
    )
    return trials


def _sampler(seed: int, fold: int, done: int) -> optuna.samplers.TPESampler:
    """Return the sampler of the next trial; without the liar, what a kill left running does not repel it."""
    own = int(np.random.SeedSequence([seed, fold, done]).generate_state(1)[0])
    return optuna.samplers.TPESampler(seed=own, constant_liar=False)


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.choices)
    if dimension.whole:
        return IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.log, step=int(dimension.step or 1)
        )
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log, step=dimension.step)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
