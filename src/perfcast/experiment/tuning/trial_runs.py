"""Work on studies until they have their trials, beside any other process that works on them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from perfcast.experiment import selection
from perfcast.experiment.tuning.search import Search, Values
from perfcast.experiment.tuning.studies import Store, Study, complete, exists
from perfcast.schema.table import Table
from perfcast.utils.errors import UserError

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


def begin(search: Search, store: Store, folds: Iterable[int]) -> None:
    """Make the missing studies of folds. Raises: UserError when a study began under other conditions."""
    for fold in folds:
        Study(search, store, fold)


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
    if not exists(store, name):
        return None
    ended = dict(list(Study(search, store, fold).finished().items())[:trials])
    if not ended:
        return None
    good = complete(ended)
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
