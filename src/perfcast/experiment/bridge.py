"""Bridge between datasets: the champion of one estimates the rows of another; the estimates are features there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.described import predict_level
from perfcast.experiment.fitting import training_rows
from perfcast.experiment.selection import predictor_factories
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.features.feature_math import append_logs, feature
from perfcast.inference.champion import Champion, build_features, load_champion
from perfcast.schema.table import BRIDGE, Role, Table, Tag, build_table, select
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

_MEANINGS = {
    "estimate": "estimate by the champion, from every known field of the row",
    "low": "lower end of the 90 % interval of the estimate",
    "high": "upper end of the 90 % interval of the estimate",
    "published": "median of the results of the same task and identity",
    "known": "results of the entity that the estimator was fitted on",
}


def estimate_rows(conf: Path, table: Table, folder: Path) -> Table:
    """Return the estimates of the rows of a standard table by the champion in a folder, as its `Bridge` says.

    A row whose task has no other beside it, of no known design, or that the champion refuses has no estimate. `known`
    counts the results of its entity that the estimator of a row was fitted on: without any, the estimate is a forecast.
    """
    bridge = read_dataset(conf, table.dataset).bridge
    if bridge is None:
        raise ValueError(f"{table.dataset} has no bridge")
    base, row = load_champion(folder, bridge.dataset), table.column_of(Tag.ROW)
    measured, held_out = base.reference_data.measured, bridge.without or base.entity
    # the level of a description predicts measured rows alone, so each has a score here, which nothing reads
    given: dict[str, Any] = {measured.column_of(Tag.ROW): table.frame[row], base.predictor.targets_[0]: 1.0}
    given[base.task] = table.frame[table.column_of(Tag.TASK)].map(bridge.tasks)
    required = [base.task, *filter(None, [base.rules.design_column])]
    frame = table.frame.reindex(columns=list(measured.frame)).assign(**given).dropna(subset=required)
    if frame.empty or held_out not in frame:
        fact = "no row has one of its tasks" if frame.empty else f"{bridge.dataset} has no column {held_out!r}"
        raise UserError(f"bridge in conf/dataset/{table.dataset}.yaml must fit the rows", fact, "correct it")
    is_new = ~frame[held_out].isin(measured.frame[held_out]) | (bridge.without is None)
    parts = []
    for value, rows in frame.groupby(frame[held_out].astype(str).mask(is_new, "")):
        champion = _refit_without(base, conf, folder, held_out, str(value)) if value else base
        parts.append(_estimate(champion, rows, held_out))
    values = pd.concat(parts).reindex(table.frame[row]).rename(columns=lambda name: f"{bridge.name}_{name}")
    unit = select(measured.columns, role=Role.TARGET)[0].unit
    columns = [feature(f"{bridge.name}_{name}", bridge.name, unit, text, 0) for name, text in _MEANINGS.items()]
    columns[-1] = replace(columns[-1], unit="")
    keys = [column for column in table.columns if column.name == row]
    facts = {"known": columns[-1].name, "without": bridge.without, "tasks": base.tasks}
    estimates = build_table(table.dataset, values.reset_index(), [*keys, *columns], {BRIDGE: facts})
    return append_logs(estimates, [f"{bridge.name}_estimate"])


def _refit_without(base: Champion, conf: Path, folder: Path, column: str, value: str) -> Champion:
    """Return a champion as `base` that no result with a value of a column is part of."""
    about, measured = read_object(folder / "about.json"), base.reference_data.measured
    frame = measured.frame[measured.frame[column].astype(str) != value]
    table = build_features(measured.dataset, frame, measured.columns, base.features)
    candidate, outlier = about["candidate"]["candidate"], read_dataset(conf, base.dataset).label_outlier
    trainer = read_yaml(conf / "trainer" / "default.yaml")
    make = predictor_factories(read_predictor(conf, base.name), base.preset, trainer)[candidate]
    predictor, _ = fit_all_rows(table, {candidate: make}, about["seed"], outlier)
    fitted = training_rows(table, np.full(len(frame), "train", dtype=object), outlier)
    uncertainty = base.calibrated and replace(base.calibrated, in_domain=fit_in_domain(table, fitted))
    left = replace(base.reference_data, measured=replace(measured, frame=frame.reset_index(drop=True)))
    return Champion(base.dataset, base.name, base.preset, base.features, predictor, left, uncertainty)


def _estimate(champion: Champion, rows: pd.DataFrame, held_out: str) -> pd.DataFrame:
    """Return the columns of a bridge for rows described as the champion's own, by their key."""
    measured, target = champion.reference_data.measured, champion.predictor.targets_[0]
    row, peers = measured.column_of(Tag.ROW), [*measured.select(tag=Tag.TASK), *measured.select(tag=Tag.IDENTITY)]
    answers = predict_level(champion, measured, rows, champion.description_levels[-1])
    answers = answers[answers["target"] == target].set_index("row").rename(columns={"predicted": "estimate"})
    medians = measured.frame.groupby(peers, observed=True)[target].median().rename("published")
    known = rows[held_out].astype(str).map(measured.frame[held_out].astype(str).value_counts()).fillna(0)
    values = rows[[row, *peers]].join(medians, on=peers).assign(known=known).set_index(row)
    return values.join(answers[["estimate", "low", "high"]]).drop(columns=peers)
