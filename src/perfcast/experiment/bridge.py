"""Bridge between datasets: the champion of one estimates the rows of another; the estimates are features there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.fitting import training_rows
from perfcast.experiment.selection import predictor_factory
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.features.feature_math import append_logs
from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import Champion, build_features
from perfcast.inference.champion_files import load_champion
from perfcast.schema.table import BRIDGE, Table, Tag, build_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object


def estimate_rows(conf: Path, table: Table, folder: Path) -> Table:
    """Return the estimates of the rows of a standard table by the champion in a folder, as its `Bridge` says.

    Raises: UserError when the bridge fits no row.
    """
    bridge = read_dataset(conf, table.dataset).bridge
    if bridge is None:
        raise ValueError(f"{table.dataset} has no bridge")
    champion = load_champion(folder, bridge.dataset)
    row = table.column_of(Tag.ROW)
    held_out = bridge.without or champion.entity
    measured = champion.reference_data.measured.frame
    tasks = table.frame[table.column_of(Tag.TASK)].dropna()
    if not tasks.isin(list(bridge.tasks)).any() or held_out not in measured:
        fact = f"no row has one of its tasks, or {bridge.dataset} has no column {held_out!r}"
        raise UserError(f"bridge in conf/dataset/{table.dataset}.yaml must fit the rows", fact, "correct it")
    names = table.frame[held_out].astype(str)
    seen = set() if bridge.without is None else {*names} & {*measured[held_out].astype(str)}
    parts = []
    for value in ["", *sorted(seen)]:
        used = _refit_without(champion, conf, folder, held_out, value) if value else champion
        rows = table.frame[names == value] if value else table.frame[~names.isin(seen)]
        parts.append(Bridge(used, bridge.name, bridge.tasks).estimate(rows))
    base = Bridge(champion, bridge.name, bridge.tasks)
    facts = {"known": base.columns[-1].name, "without": bridge.without, "tasks": champion.tasks}
    keys = [column for column in table.columns if column.name == row]
    frame = table.frame[[row]].join(pd.concat(parts))
    estimates = build_table(table.dataset, frame, [*keys, *base.columns], {BRIDGE: facts})
    return append_logs(estimates, [base.columns[0].name])


def _refit_without(base: Champion, conf: Path, folder: Path, column: str, value: str) -> Champion:
    """Return a champion as `base` that no result with a value of a column is part of."""
    about = read_object(folder / "about.json")
    measured = base.reference_data.measured
    frame = measured.frame[measured.frame[column].astype(str) != value]
    table = build_features(measured.dataset, frame, measured.columns, base.features)
    outlier = read_dataset(conf, base.dataset).label_outlier
    trainer = read_yaml(conf / "trainer" / "default.yaml")
    declared = read_predictor(conf, base.name)
    make = predictor_factory(declared, declared.arguments(base.preset), trainer)
    predictor = fit_all_rows(table, make, about["seed"], outlier)
    fitted = training_rows(table, np.full(len(frame), "train", dtype=object), outlier)
    # later results may be those of the value
    uncertainty = base.calibrated and replace(base.calibrated, in_domain=fit_in_domain(table, fitted), known=None)
    left = replace(base.reference_data, measured=replace(measured, frame=frame.reset_index(drop=True)))
    return Champion(base.dataset, base.name, base.preset, base.features, predictor, left, uncertainty)
