"""Storage of trials: an Optuna study per fold, in a file or database that several processes share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import optuna
from filelock import FileLock, Timeout
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from perfcast.config.search_space import Choices, Dimension
from perfcast.experiment.tuning.search import Search, Values
from perfcast.utils.errors import UserError

SQLITE, JOURNAL = "sqlite", "journal"
_LOCK_SECONDS = 60
"""How long a process waits for another one's transaction: several may work on a file at once."""
_SLOT = "slot"
_CONDITIONS = "asked"
"""Attribute of a stored study. The name is that of the studies that exist."""


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
        known = optuna.create_study(sampler=_sampler(self.search.seed, self.fold, slot), direction="minimize")
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


def exists(store: Store, name: str) -> bool:
    """Return whether a store has a study."""
    return name in optuna.get_all_study_names(store.storage)


def complete(trials: Mapping[int, FrozenTrial]) -> dict[int, FrozenTrial]:
    """Return the trials that did not fail."""
    return {slot: trial for slot, trial in trials.items() if trial.state == TrialState.COMPLETE}


def _sampler(seed: int, fold: int, slot: int) -> optuna.samplers.TPESampler:
    sampler_seed = int(np.random.SeedSequence([seed, fold, slot]).generate_state(1)[0])
    return optuna.samplers.TPESampler(seed=sampler_seed, constant_liar=False)


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.choices)
    if dimension.whole:
        return IntDistribution(
            int(dimension.low), int(dimension.high), log=dimension.log, step=int(dimension.step or 1)
        )
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log, step=dimension.step)
