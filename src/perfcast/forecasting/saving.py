"""Write a champion's folder: the model, how sure it is, and what it knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfcast.forecasting.knowledge import Knowledge
from perfcast.forecasting.neighbours import Neighbourhood
from perfcast.intervals import Calibrated
from perfcast.io import digests, write_json
from perfcast.predictors.base import Predictor
from perfcast.schema import Table, Tag


def save_champion(
    folder: Path,
    predictor: Predictor,
    calibrated: Calibrated | None,
    *,
    standard: Table,
    table: Table,
    raw: Mapping[str, Path],
    about: Mapping[str, Any],
) -> None:
    """Write what `load_champion` reads.

    `standard` is the data set's standard table, `table` the one with features, `raw` the folders of its ingested
    sources, `about` what it is, `features` (the feature modules) included.
    """
    features: Sequence[str] = about["features"]
    predictor.save(folder / "model")
    knowledge = Knowledge.gather(standard, raw, features)
    (folder / "knowledge").mkdir(parents=True, exist_ok=True)
    knowledge.save(folder / "knowledge")
    if calibrated is not None:
        calibrated.save(folder / "intervals")
        row = table.column_of(Tag.ROW)
        ordered = table.frame.set_index(row).loc[knowledge.measured.frame[row]].reset_index()
        encoded = calibrated.support.encode(ordered)
        Neighbourhood(knowledge.measured, encoded, calibrated).save(folder / "knowledge")
    (folder / "about.json").unlink(missing_ok=True)
    write_json(folder / "about.json", {**about, "files": digests(folder)})
