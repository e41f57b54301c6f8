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
from perfcast.experiment.selection import predictor_factories
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.features.feature_math import append_logs
from perfcast.inference.bridge import Base
from perfcast.inference.champion import Champion, build_features, load_champion
from perfcast.schema.table import BRIDGE, Column, Kind, Role, Table, Tag, build_table
from perfcast.utils.io import read_object
from perfcast.utils.progress import Progress, ignore_progress


def estimate_rows(conf: Path, table: Table, folder: Path, progress: Progress = ignore_progress) -> Table:
    """Return the estimates of the rows of a standard table by the champion in a folder, as its `Bridge` says.

    A row whose task has no other beside it, of no known design, or that the champion refuses has no estimate. `known`
    counts the results of its entity that the estimator of a row was fitted on: the leakage check reads it.
    """
    bridge = read_dataset(conf, table.dataset).bridge
    if bridge is None:
        raise ValueError(f"{table.dataset} has no bridge")
    champion, row = load_champion(folder, bridge.dataset), table.column_of(Tag.ROW)
    held_out = bridge.without or champion.entity
    names = table.frame[held_out].astype(str)
    seen = (
        set() if bridge.without is None else {*names} & {*champion.reference_data.measured.frame[held_out].astype(str)}
    )
    parts = []
    for number, value in enumerate(["", *sorted(seen)]):
        progress(f"estimates without {value}" if value else "estimates", number, 1 + len(seen))
        used = _refit_without(champion, conf, folder, held_out, value) if value else champion
        rows = table.frame[names == value] if value else table.frame[~names.isin(seen)]
        counts = used.reference_data.measured.frame[held_out].astype(str).value_counts()
        estimates = Base(used, bridge.name, bridge.tasks).estimate(rows).add_prefix(f"{bridge.name}_")
        parts.append(estimates.assign(**{f"{bridge.name}_known": names[rows.index].map(counts).fillna(0)}))
    meaning = f"results of the same {held_out} that the estimator was fitted on"
    known = Column(f"{bridge.name}_known", Kind.NUMERICAL, Role.PROVENANCE, "provenance", "", meaning, 0)
    keys = [column for column in table.columns if column.name == row]
    columns = [*keys, *Base(champion, bridge.name, bridge.tasks).columns, known]
    facts = {"known": known.name, "without": bridge.without, "tasks": champion.tasks}
    frame = table.frame[[row]].join(pd.concat(parts))
    return append_logs(build_table(table.dataset, frame, columns, {BRIDGE: facts}), [f"{bridge.name}_estimate"])


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
