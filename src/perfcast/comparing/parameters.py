"""What changed in the parameters: those of the experiment, and those that each run was trained with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfcast.comparing.sides import Side
from perfcast.plain_yaml import read_mapping

ABSENT = "(none)"
EXPERIMENT = "experiment"
_JUDGING = ("resamples", "seed", "level")
"""What an evaluation's summary tells of how it was made."""


@dataclass(frozen=True)
class ParameterChange:
    """One key with its values on either side, ABSENT where a side has none, and the runs (or what else) it is of."""

    key: str
    before: Any
    after: Any
    where: tuple[str, ...]


def parameter_changes(a: Side, b: Side) -> list[ParameterChange]:
    """Return every key whose value differs: the experiment's first, then those of shared runs, equal ones together."""
    found: dict[tuple[str, str, str], ParameterChange] = {}
    experiment = _differences(_experiment(a), _experiment(b)) if a.lock and b.lock else {}
    for key, (before, after) in experiment.items():
        _add(found, key, before, after, EXPERIMENT)
    before_judged, after_judged = a.summaries(), b.summaries()
    for dataset in sorted({*before_judged} & {*after_judged}):
        judged = [{key: one[dataset].get(key, ABSENT) for key in _JUDGING} for one in (before_judged, after_judged)]
        for key, (before, after) in _differences(*judged).items():
            if key not in experiment:
                _add(found, f"evaluation.{key}", before, after, dataset)
    before_runs, after_runs = _runs(a.folder), _runs(b.folder)
    for run in sorted({*before_runs} & {*after_runs}):
        told = _differences(_run_config(before_runs[run]), _run_config(after_runs[run]))
        for key, (before, after) in told.items():
            if key not in experiment:  # `schedule` and `seeds` of the experiment are in every run's file as well
                _add(found, key, before, after, run)
    return list(found.values())


def runs_of_one_side(a: Side, b: Side) -> tuple[list[str], list[str]]:
    """Return the runs that only `a` has, and those that only `b` has: data set/split/predictor."""
    before, after = _runs(a.folder), _runs(b.folder)
    return sorted({*before} - {*after}), sorted({*after} - {*before})


def _add(found: dict[tuple[str, str, str], ParameterChange], key: str, before: Any, after: Any, where: str) -> None:
    known = found.get((key, repr(before), repr(after)))
    places = (*known.where, where) if known else (where,)
    found[key, repr(before), repr(after)] = ParameterChange(key, before, after, places)


def _experiment(side: Side) -> dict[str, Any]:
    return dict(_flat(side.lock.params)) if side.lock else {}


def _runs(folder: Path) -> dict[str, Path]:
    paths = sorted((folder / "runs").glob("*/*/*/config.yaml"))
    return {str(path.parent.relative_to(folder / "runs")): path for path in paths}


def _run_config(path: Path) -> dict[str, Any]:
    """Return a run's configuration as dotted keys.

    A predictor with one setting has it under a name that says only which schedule it is of: the name is left out, so
    that values compare between schedules.
    """
    config = read_mapping(path.read_text(encoding="utf-8", errors="replace"), str(path))
    settings = config.get("predictor", {}).get("settings")
    if isinstance(settings, Mapping) and len(settings) == 1:
        config["predictor"]["settings"] = next(iter(settings.values()))
    return dict(_flat(config))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    keys = [*before, *[key for key in after if key not in before]]
    pairs = {key: (before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
