"""Hyperparameter search by Optuna: one resumable study per split, predictor and fold, shared by several processes."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from filelock import FileLock, Timeout
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from perfcast.config.predictor_conf import Choices, Dimension, PredictorConf
from perfcast.experiment import selection
from perfcast.schema.table import Table
from perfcast.utils.errors import UserError
from perfcast.utils.nested import merged

SQLITE, JOURNAL = "sqlite", "journal"
_LOCK_SECONDS = 60
"""How long a process waits for another one's transaction: several may work on a file at once."""
_SLOT = "slot"
_CONDITIONS = "asked"
"""Attribute of a stored study. The name is that of the studies that exist."""


Values = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """Common properties of the studies of one dataset, split and predictor.

    `name` is <dataset>/<split>/<predictor>. `arguments` are the constructor's under the preset. `space` holds the
    searched ones, `default_values` their values without tuning. `origin` has digests of the table and the folds. Trials
    are proposed in rounds of `at_once`, without knowledge of the other trials of their round.
    """

    name: str
    conf: PredictorConf
    arguments: Values
    space: dict[str, Dimension]
    default_values: Values
    machine: Mapping[str, Any]
    seed: int
    label_outlier: float | None
    origin: Mapping[str, str]
    at_once: int = 1

    def study(self, fold: int) -> str:
        """Return the name of one fold's study."""
        return f"{self.name}/fold_{fold}"

    def conditions(self) -> dict[str, str]:
        """Return digests of the conditions that trials must share to be comparable."""
        return {
            "space": _digest({name: dimension.model_dump() for name, dimension in self.space.items()}),
            "params": _digest({**self.arguments, **self.default_values}),
            "seed": str(self.seed),
            "label_outlier": str(self.label_outlier),
            **self.origin,
            **({"at_once": str(self.at_once)} if self.at_once > 1 else {}),
        }


def make_search(
    name: str,
    conf: PredictorConf,
    preset: str,
    *,
    machine: Mapping[str, Any],
    seed: int,
    label_outlier: float | None,
    origin: Mapping[str, str],
    at_once: int = 1,
) -> Search:
    """Return the search that a predictor's conf describes, without the parameters that the quick preset fixes.

    Raises: UserError when there is nothing to search, or the conf's own value is outside the space.
    """
    predictor = name.rpartition("/")[2]
    where = f"conf/predictor/{predictor}.yaml"
    fixed = conf.quick if preset == "quick" else {}
    space = {key: dimension for key, dimension in conf.space.items() if key not in fixed}
    if not space:
        raise UserError(
            f"{where} must have a space that the {preset} preset leaves open",
            f"{predictor} has none",
            "add `space:`, parameter by parameter",
        )
    arguments = merged(conf.params, fixed)
    known = selection.make_predictor(conf.target, arguments, None).get_params(deep=False)
    for key, dimension in space.items():
        if key not in known:
            raise UserError(f"space in {where} must name parameters of {conf.target}", f"it has none called {key!r}")
        if not dimension.holds(known[key]):
            raise UserError(
                f"space.{key} in {where} must contain the default value, which is tried first",
                f"{known[key]!r} is outside",
                "widen the range or change params",
            )
    default_values = {key: known[key] for key in space}
    return Search(name, conf, arguments, space, default_values, machine, seed, label_outlier, origin, at_once)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """The studies of one dataset, split and predictor, and the folder by whose locks processes share the work."""

    storage: optuna.storages.BaseStorage
    locks: Path


def open_store(path: Path, place: str = SQLITE) -> Store:
    """Open the studies at `path`, a file's name without its suffix, made first when they are new.

    `place` is sqlite (a file, on a disk of this machine), journal (a file, on a network file system too) or the URL of
    a database. Raises: UserError when a database cannot be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    locks = path.with_suffix(".locks")
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / "store.lock"):  # two processes that meet a new file would both make its tables
        return Store(_open(path, place), locks)


def _open(path: Path, place: str) -> optuna.storages.BaseStorage:
    if place == SQLITE:
        waiting = {"connect_args": {"timeout": _LOCK_SECONDS}}
        return optuna.storages.RDBStorage(f"sqlite:///{path.with_suffix('.db')}", engine_kwargs=waiting)
    if place == JOURNAL:
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        file = str(path.with_suffix(".journal"))
        return optuna.storages.JournalStorage(JournalFileBackend(file, lock_obj=JournalFileOpenLock(file)))
    if "://" not in place:
        raise UserError(f"--storage must be {SQLITE}, {JOURNAL} or the URL of a database", f"found {place}")
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return optuna.storages.RDBStorage(place, engine_kwargs={"pool_pre_ping": True})
    except (ImportError, SQLAlchemyError) as error:
        message = str(error).strip().splitlines()[0]
        raise UserError(
            "--storage must be a database that answers", message, "see whether it runs, and install its driver"
        ) from None
    except RuntimeError:  # Optuna finds tables of a version that it does not know: another program's, such as MLflow's
        raise UserError(
            "--storage must be a database of its own, or one that this Optuna made",
            "it holds other tables",
            "make an empty one beside it",
        ) from None


class Study:
    """Study of one fold. A slot identifies a trial: its place in the order in which trials are proposed.

    A process that works on a slot holds its lock. The operating system releases the lock when the process ends or is
    killed. No other process waits for a timeout, and a killed trial leaves nothing behind.
    """

    def __init__(self, search: Search, store: Store, fold: int) -> None:
        self.search, self.store, self.fold = search, store, fold
        self.name, conditions = search.study(fold), search.conditions()
        self._distributions = {name: _distribution(dimension) for name, dimension in search.space.items()}
        with FileLock(store.locks / "store.lock"):
            self._study = optuna.create_study(
                storage=store.storage, study_name=self.name, direction="minimize", load_if_exists=True
            )
            before = self._study.user_attrs.get(_CONDITIONS)
            if before is None:
                self._study.set_user_attr(_CONDITIONS, conditions)
        if before is not None and before != conditions:
            changed = [what for what in {**before, **conditions} if before.get(what) != conditions.get(what)]
            raise UserError(
                f"study {self.name} must continue under the conditions of its first trial",
                f"changed since: {', '.join(changed)}",
                "undo the change, remove the study's file, or name another --out",
            )

    def finished(self) -> dict[int, FrozenTrial]:
        """Return the finished trials by slot, failed ones included."""
        states = (TrialState.COMPLETE, TrialState.FAIL)
        ended = self._study.get_trials(deepcopy=False, states=states)
        trials = {trial.user_attrs.get(_SLOT, position): trial for position, trial in enumerate(ended)}
        return dict(sorted(trials.items()))

    def open_slots(self, trials: int) -> list[int]:
        """Return the slots that may be worked on: the unfinished ones of the first unfinished round."""
        done, at_once = self.finished(), self.search.at_once
        first = next((slot for slot in range(trials) if slot not in done), trials)
        start = first - first % at_once
        return [slot for slot in range(first, min(start + at_once, trials)) if slot not in done]

    @contextmanager
    def claimed(self, slot: int) -> Iterator[bool]:
        """Hold a slot within the block; yield whether this process holds it and it is unfinished."""
        lock = FileLock(self.store.locks / f"fold_{self.fold}_{slot % self.search.at_once}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield slot not in self.finished()
        finally:
            lock.release()

    def proposal(self, slot: int) -> Values:
        """Return the values that a slot tries: the defaults first, then those that the seed and earlier rounds suggest.

        They do not depend on the other trials of the round or on the processes that work on them.
        """
        if slot == 0:
            return dict(self.search.default_values)
        start = slot - slot % self.search.at_once
        seed = int(np.random.SeedSequence([self.search.seed, self.fold, slot]).generate_state(1)[0])
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=False)
        known = optuna.create_study(sampler=sampler, direction="minimize")
        for earlier, trial in self.finished().items():
            if earlier < start:
                known.add_trial(trial)
        return dict(known.ask(self._distributions).params)

    def record(self, slot: int, values: Values, began: datetime, error: float | None, reason: str | None) -> None:
        """Store a finished trial: its error, or the reason why it has none."""
        trial = optuna.trial.create_trial(
            state=TrialState.FAIL if error is None else TrialState.COMPLETE,
            value=error,
            params=values,
            distributions=self._distributions,
            user_attrs={_SLOT: slot, **({} if reason is None else {"reason": reason})},
        )
        trial.datetime_start = began
        self._study.add_trial(trial)

    def best_error(self) -> float:
        """Return the smallest error yet."""
        return float(self._study.best_value)


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.choices)
    if dimension.whole:
        return IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.log, step=int(dimension.step or 1)
        )
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log, step=dimension.step)


_PAUSE = 0.5
"""Seconds between two attempts to claim a slot, when other processes hold all open ones."""


@dataclass(frozen=True)
class Outcome:
    """Best trial of one fold, with its inner validation MAPE (%) and that of the default values (None: it failed)."""

    values: Values
    inner_mape: float
    own_inner_mape: float | None
    trials: int
    failed: int


def tune(
    search: Search,
    store: Store,
    table: Table,
    parts: Mapping[int, np.ndarray],
    *,
    trials: int,
    timeout: float | None,
    report: Callable[[str], None],
) -> None:
    """Continue the studies of folds until each has `trials` finished trials, failed ones included.

    Every trial trains without the fold's inner validation rows and is evaluated on them; test rows are not used. The
    first trial has the default values. A killed trial is repeated. The values of a trial depend on the seed and on
    earlier rounds alone: neither interruptions nor the number of processes change the result of a study.

    Shapes: `parts` maps a fold to one of train | validation | test | unused per row of the table. Units: `timeout` in
    seconds, after which this process begins no trial of a fold. Raises: UserError when a study began under
    other conditions, or no error can be measured.
    """
    studies = {fold: Study(search, store, fold) for fold in parts}
    started: dict[int, float] = {}
    while open_slots := _open_slots(studies, trials, timeout, started):
        for fold, slot in open_slots:
            study = studies[fold]
            with study.claimed(slot) as ours:
                if ours:
                    started.setdefault(fold, time.monotonic())
                    began = time.monotonic()
                    message, values = _try(study, slot, table, parts[fold])
                    shown = " ".join(
                        f"{name}={f'{value:.4g}' if isinstance(value, float) else value}"
                        for name, value in values.items()
                    )
                    seconds = time.monotonic() - began
                    report(f"{study.name} trial {slot + 1} of {trials}: {message} ({seconds:.0f} s) {shown}")
                    break
        else:
            time.sleep(_PAUSE)


def _open_slots(
    studies: Mapping[int, Study], trials: int, timeout: float | None, started: Mapping[int, float]
) -> list[tuple[int, int]]:
    """Return the open slots of the folds whose time is not over."""
    slots = []
    for fold, study in studies.items():
        if timeout is None or fold not in started or time.monotonic() - started[fold] < timeout:
            slots += [(fold, slot) for slot in study.open_slots(trials)]
    return slots


def outcome(search: Search, store: Store, fold: int, trials: int) -> Outcome | None:
    """Return the best of one fold's first `trials` finished trials, the earliest of equal ones; None without any.

    Raises: UserError when all of them failed.
    """
    name = search.study(fold)
    if name not in optuna.get_all_study_names(store.storage):
        return None
    ended = dict(list(Study(search, store, fold).finished().items())[:trials])
    if not ended:
        return None
    good = {slot: trial for slot, trial in ended.items() if trial.state == TrialState.COMPLETE}
    if not good:
        first = next(iter(ended.values()))
        raise UserError(
            f"at least one trial of {name} must succeed",
            f"all {len(ended)} failed, the first because {first.user_attrs['reason']}",
            "repair the cause and remove the study's file",
        )
    best = good[min(good, key=lambda slot: (good[slot].value, slot))]
    default_error = good[0].value if 0 in good else None
    return Outcome(dict(best.params), best.value, default_error, len(ended), len(ended) - len(good))


def _try(study: Study, slot: int, table: Table, part: np.ndarray) -> tuple[str, Values]:
    """Measure and record one trial; return a message and its values."""
    search, values, began = study.search, study.proposal(slot), datetime.now()
    make = selection.predictor_factory(search.conf, {**search.arguments, **values}, search.machine)
    error, reason = None, None
    try:
        error = selection.inner_error(table, part, make, search.seed, search.label_outlier)
    except UserError as mistake:
        reason = str(mistake)
    if error is None and reason is None:
        raise UserError(
            f"{study.name} must have measured inner validation rows",
            "its split has none",
            "choose a split with such rows",
        )
    if error is not None and not math.isfinite(error):
        error, reason = None, f"the inner MAPE is {error}"
    study.record(slot, values, began, error, reason)
    if error is None:
        return f"failed: {reason}", values
    return f"inner MAPE {error:.3f} %, best {study.best_error():.3f} %", values
