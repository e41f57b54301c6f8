"""Forecast machines that nobody has measured with a data set's champion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.errors import UserError
from perfcast.intervals import LEVEL, Calibrated, questions_of
from perfcast.io import read_json
from perfcast.machines import read_machines
from perfcast.predictors.base import Predictor, load_predictor
from perfcast.schema import Column, Kind, Role, Table, Tag, build_table, select


@dataclass(frozen=True)
class Champion:
    """The best predictor of a data set, fitted on every row, with the feature modules it was fitted on."""

    dataset: str
    name: str
    schedule: str
    features: tuple[str, ...]
    predictor: Predictor
    calibrated: Calibrated | None = None
    """How sure it is; None where too few rows were there to say so."""


@dataclass(frozen=True)
class Asked:
    """What else is asked beside the machines: the interval's level, and when they will be measured."""

    level: float = LEVEL
    when: pd.Timestamp | None = None
    """None: as soon as the last training row."""


def read_champion(folder: Path, dataset: str) -> Champion:
    """Read what `perfcast champion` wrote. Raises: UserError when there is none, or it is another data set's."""
    path = Path(folder) / "about.json"
    if not path.is_file():
        raise UserError(f"data set {dataset!r} must have a champion", f"there is no {path}", "run snakemake to make it")
    about = read_json(path)
    if about["dataset"] != dataset:
        raise UserError(f"the champion must be one of {dataset!r}", f"{folder} is of {about['dataset']!r}")
    predictor = load_predictor(Path(folder) / "model")
    place = Path(folder) / "intervals"
    calibrated = Calibrated.load(place) if place.is_dir() else None
    return Champion(dataset, about["predictor"], about["schedule"], tuple(about["features"]), predictor, calibrated)


def machine_columns(standard: Sequence[Column], features: Sequence[str]) -> list[Column]:
    """Return the columns a machine can be described by: features, keys, and the dates that feature modules read."""
    read = {name for module in features for name in plugins.load("features", module).REQUIRES}
    return [
        column
        for column in standard
        if column.role in (Role.FEATURE, Role.KEY) or (column.kind is Kind.DATE and column.name in read)
    ]


def forecast_file(
    path: Path, standard: Table, champion: Champion, raw: Mapping[str, Path], asked: Asked = Asked()
) -> pd.DataFrame:
    """Forecast the machines of a CSV file; see `read_machines` for the file and `forecast` for the answer.

    Raises: UserError for whatever the file has that cannot be used.
    """
    completion = plugins.load("completion", champion.dataset) if _completes(champion.dataset) else None
    aliases = completion.ALIASES if completion else {}
    machines = read_machines(path, machine_columns(standard.columns, champion.features), aliases)
    return forecast(machines, standard, champion, raw, asked)


def forecast(
    machines: pd.DataFrame, standard: Table, champion: Champion, raw: Mapping[str, Path], asked: Asked = Asked()
) -> pd.DataFrame:
    """Forecast every machine for its task, or for all tasks where it names none, after completing its description.

    A task gets the targets that it was measured in, see `Predictor`.

    `standard` is the data set's standard table, `raw` maps the ingested sources to their folders.
    Shapes: one row per machine, task and target with the columns line (index of `machines`), machine (its row key or,
    without one, its entity), the task's name, target, estimate, low and high (its interval), unit, support (1: the like
    was measured, nearly 0: nothing like it was), unlike (what is least like anything measured), champion,
    features_missing, features (of the champion). Units: those of the target. Without a calibration low, high, support
    and unlike are missing.

    Raises: UserError when a task is not one of the data set's.
    """
    expanded = _completed(machines, standard, raw)
    table = build_table(champion.dataset, expanded, standard.columns)
    for name in champion.features:
        table = plugins.load("features", name).derive(table)
    estimates, wanted = champion.predictor.predict(table.frame), champion.predictor.asked(table.frame)
    inputs = [column.name for column in select(champion.predictor.columns_, role=Role.FEATURE)]
    row, task, entity = (table.one(tag) for tag in (Tag.ROW, Tag.TASK, Tag.ENTITY))
    units = {column.name: column.unit for column in table.columns}
    answer = pd.DataFrame(
        {
            "line": expanded.index,
            "machine": table.frame[row].fillna(table.frame[entity]),
            task: table.frame[task],
            **{target: estimates[target] for target in champion.predictor.targets_},
            "champion": champion.name,
            "features_missing": table.frame[inputs].isna().sum(axis=1),
            "features": len(inputs),
        }
    )
    kept = ["line", "machine", task, "champion", "features_missing", "features"]
    parts = [
        answer[kept].assign(target=target, estimate=answer[target], **_sure(champion, table, target, asked))
        for target in champion.predictor.targets_
    ]
    long = pd.concat(parts)[wanted.ravel(order="F")]
    long = long.assign(
        unit=long["target"].map(units),
        low=long["estimate"] * np.exp(-long["half"]),
        high=long["estimate"] * np.exp(long["half"]),
    )
    long = long.sort_index(kind="stable").reset_index(drop=True)
    told = ["line", "machine", task, "target", "estimate", "low", "high", "unit", "support", "unlike"]
    return long[[*told, "champion", "features_missing", "features"]]


def _sure(champion: Champion, table: Table, target: str, asked: Asked) -> dict[str, pd.Series]:
    """Return the columns half, support and unlike for one target, missing without a calibration."""
    X = table.frame
    if champion.calibrated is None:
        nothing = pd.Series(np.nan, index=X.index)
        return {"half": nothing, "support": nothing, "unlike": nothing.astype(object)}
    when = None if asked.when is None else pd.Series(asked.when, index=X.index)
    questions = questions_of(X[table.one(Tag.TASK)], target)
    found = champion.calibrated.intervals(X, questions, when, asked.level)
    return {str(name): found[name] for name in found}


def _completes(dataset: str) -> bool:
    return dataset in plugins.names("completion")


def _completed(machines: pd.DataFrame, standard: Table, raw: Mapping[str, Path]) -> pd.DataFrame:
    """Return the machines by task with every standard column, missing cells filled as far as something is known.

    In this order, given values winning: tables about the named part (`perfcast.completion`), the measured rows of the
    part where they agree, what a row implies itself, the measured rows of the task where they agree.
    """
    completion = plugins.load("completion", standard.dataset) if _completes(standard.dataset) else None
    full = machines.reindex(columns=[column.name for column in standard.columns])
    if completion:
        full = completion.complete_part(full, raw)
    full = _fill_agreed(full, standard, Tag.ENTITY)
    if completion:
        full = completion.complete_machine(full)
    return _fill_agreed(_by_task(full, standard), standard, Tag.TASK)


def _by_task(machines: pd.DataFrame, standard: Table) -> pd.DataFrame:
    """Repeat machines without a task once per task."""
    name = standard.one(Tag.TASK)
    tasks = sorted(standard.frame[name].dropna().unique())
    wrong = machines[name].notna() & ~machines[name].isin(tasks)
    if wrong.any():
        line, found = machines.index[wrong][0], machines.loc[wrong, name].iloc[0]
        raise UserError(f"{name} must be one of {', '.join(tasks)}", f"line {line} has {found!r}", "or leave it empty")
    wanted = machines[name].map(lambda task: [task] if isinstance(task, str) else tasks)
    return machines.assign(**{name: wanted}).explode(name)


def _fill_agreed(machines: pd.DataFrame, standard: Table, tag: Tag) -> pd.DataFrame:
    """Fill missing features of the tagged column's group with the one value that its measured rows state.

    A feature on which the measured rows of a part (or task) differ is none of the part's own, and stays missing.
    """
    by = standard.one(tag)
    group = next(column.group for column in standard.columns if column.name == by)
    names = [name for name in standard.select(role=Role.FEATURE, group=group) if name != by]
    rows = standard.frame[standard.frame[by].isin(machines[by])].groupby(by)[names]
    agreed = rows.first().where(rows.nunique() == 1)
    filled = {name: machines[name].where(machines[name].notna(), machines[by].map(agreed[name])) for name in names}
    return machines.assign(**filled)
