"""Folders and files of champions: what a run writes and a prediction reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import Champion
from perfcast.inference.champion_archive import BASE, find_base, unpack_champion
from perfcast.inference.imputation import tabulate_typical
from perfcast.inference.measured_index import NeighborIndex, group_distinct
from perfcast.inference.reference_data import ReferenceData
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version, read_parquet
from perfcast.uncertainty.conformal import UncertaintyModel
from perfcast.utils.errors import UserError, explain_missing_module
from perfcast.utils.io import read_json, write_json
from perfcast.utils.result_digests import record_digests, verify_folder

_REFERENCE_DATA, INTERVALS = "reference_data", "intervals"
_TYPICAL = "typical.parquet"
"""Typical machines of the measured entities, in the folder of the reference data."""


def load_champion(folder: Path | str, dataset: str | None = None, power: Path | str | None = None) -> Champion:
    """Read the folder that `perfcast pipeline champion` wrote, or the file that `perfcast champion export` wrote.

    Args: `power` has the champion of power that it takes along.
    Raises: UserError when there is none, it is of another dataset or schema version, a file in it has changed, or it is
    no fitted model.
    """
    given = Path(folder)
    with unpack_champion(given) if given.is_file() else nullcontext(given) as unpacked:
        if not (unpacked / "about.json").is_file():
            missing = "a champion" if dataset in (None, given.name) else f"a champion of {dataset!r}"
            remedy = "run `make run`, or `make demo` and add --results results/demo"
            raise UserError(f"there must be {missing}", f"{given} has none", remedy)
        try:
            verify_folder(unpacked)
            about = read_json(unpacked / "about.json")
            check_schema_version(about, unpacked / "about.json")
            if dataset is not None and about["dataset"] != dataset:
                raise UserError(f"the champion must be one of {dataset!r}", f"it is of {about['dataset']!r}")
            reference_data = ReferenceData.load(unpacked / _REFERENCE_DATA)
            intervals, bridge = unpacked / INTERVALS, about.get("bridge")
            calibrated = UncertaintyModel.load(intervals) if intervals.is_dir() else None
            index = unpacked / _REFERENCE_DATA
            table = index / _TYPICAL
            return Champion(
                about["dataset"],
                about["predictor"],
                about["preset"],
                tuple(about["features"]),
                load_predictor(unpacked / "model"),
                reference_data,
                calibrated,
                NeighborIndex.load(index, reference_data.measured, calibrated) if calibrated else None,
                load_base(find_base(unpacked, bridge) if bridge else None, bridge),
                None if power is None else load_champion(power).require_power(),
                source=about.get("source", ""),
                retrieved=about.get("retrieved", ""),
                notice=about.get("notice", ""),
                saved_typical=read_parquet(table) if table.is_file() else None,
            )
        except UserError:
            raise
        except Exception as error:  # any error that a library raises for bytes that it did not write
            if isinstance(error, ImportError) and (absent := explain_missing_module(error, "this model")):
                raise absent from None
            fact = f"{given} cannot be read ({type(error).__name__})"
            raise UserError("a champion must be as it was saved", fact, "make it again, or fetch it again") from error


def load_base(folder: Path | None, bridge: Mapping[str, Any] | None) -> Bridge | None:
    """Read the champion of the other dataset that a bridge names, None without a bridge."""
    if folder is None or bridge is None:
        return None
    return Bridge(load_champion(folder, bridge["dataset"]), bridge["name"], bridge["tasks"])


def save_champion(
    folder: Path,
    predictor: Predictor,
    calibrated: UncertaintyModel | None,
    *,
    standard: Table,
    table: Table,
    raw: Mapping[str, Path],
    about: Mapping[str, Any],
    base: Path | None = None,
) -> None:
    """Write the folder that `load_champion` reads; it has a copy of the champion `base` that its features rest on.

    Args: `standard` is the dataset's standard table, `table` the one with features, `raw` the folders of its ingested
    sources, `about` its description, with the names of the feature modules under `features`.
    """
    predictor.save(folder / "model")
    if base is not None:
        shutil.copytree(base, folder / BASE, ignore=shutil.ignore_patterns(".*"))
    reference_data = ReferenceData.gather(standard, raw, about["features"])
    (folder / _REFERENCE_DATA).mkdir(parents=True, exist_ok=True)
    reference_data.save(folder / _REFERENCE_DATA)
    if calibrated is not None:
        calibrated.save(folder / INTERVALS)
        row = table.column_of(Tag.ROW)
        ordered = table.frame.set_index(row).loc[reference_data.measured.frame[row]].reset_index()
        arrays = group_distinct(calibrated.in_domain.encode(ordered), calibrated)
        NeighborIndex(reference_data.measured, arrays, calibrated).save(folder / _REFERENCE_DATA)
    write_json(folder / "about.json", {SCHEMA_KEY: SCHEMA_VERSION, **about})
    record_digests(folder)
    champion = load_champion(folder)
    typical_table = tabulate_typical(champion) if champion.describes_machines else None
    if typical_table is not None:
        typical_table.to_parquet(folder / _REFERENCE_DATA / _TYPICAL)
        record_digests(folder)
