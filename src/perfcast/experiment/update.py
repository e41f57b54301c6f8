"""Newer official results: what a live dump adds, and what a champion that learns from it answers differently."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.config.conf_files import read_conf
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.experiment.bridge import estimate_rows
from perfcast.experiment.rolling import find_later_errors, save_known_errors
from perfcast.inference.champion import Champion, load_champion
from perfcast.inference.machine_files import make_entry
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.schema.table import Role, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.sources.bounded_files import MAGIC, kind_by_content
from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.locations import present_sources
from perfcast.sources.source_spec import MANIFEST, SourceFile, parse_source
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, read_object, sha256, write_json
from perfcast.utils.result_digests import record_digests
from perfcast.utils.terminal_tables import format_interval, format_number

if TYPE_CHECKING:
    from perfcast.uncertainty.conformal import UncertaintyModel

LIMITS = DownloadLimits(read=120.0, retries=1)
"""The publisher makes the file on request, which takes a while."""
MAX_REJECTED = 0.25
"""Share of the rows of a dump that may be unusable; of those at hand 0.2 to 14 % are."""
_RESULTS = "results.parquet"
_KEYS = ["machine", "task", "target"]
_MAX_NAMED = 20


def update_champion(
    folder: Path, dataset: str, given: Path | None, *, results: Path, project: Path, limits: DownloadLimits = LIMITS
) -> Iterator[str]:
    """Learn the newest official results without training; yield in lines what is done and what it changes.

    The dump is `given`, or fetched from the address of the source. It is kept in <results>/dumps/<source>, with its
    checksum, beside earlier ones. Nothing is written unless it has every earlier result with the same score.
    Raises: UserError when the dump cannot be had, is no plausible successor, or the champion cannot learn.
    """
    conf = read_dataset(project / "conf", dataset)
    name = conf.sources.required[0]
    live = parse_source(name, read_conf(project / "conf", "source", name)).live
    if live is None:
        raise UserError("the source must have a live dump", f"conf/source/{name}.yaml states none")
    if folder.is_file():
        raise UserError("a champion that learns must be a folder", f"{folder} is a file", "give the folder")
    champion, dumps = load_champion(folder, dataset).require_described(), results / "dumps" / name
    raw = present_sources(results / "raw", conf.sources.optional)
    with TemporaryDirectory(prefix="perfcast-") as temporary:
        origin = str(given or live.url)
        yield f"{dataset}: reading {origin}"
        dump = _fetch(live, given, Path(temporary), limits)
        table = _standardize(conf, {**raw, name: dump.parent}, dump, origin)
        entity, row, time = map(table.column_of, (Tag.ENTITY, Tag.ROW, Tag.TIME))
        names = [row, entity, *table.select(role=Role.TARGET)]
        earlier = _read_earlier(champion.reference_data.measured.frame[names], dumps)
        _check_history(earlier.set_index(row).drop(columns=entity), table.frame.set_index(row), origin)
        new, newest = table.frame[~table.frame[row].isin(earlier[row])], f"{table.frame[time].max():%Y-%m}"
        if newest > f"{date.today():%Y-%m}":
            raise UserError(f"{origin} must have results of the past", f"one is of {newest}", "check the date and file")
        estimates = estimate_rows(project / "conf", table, folder.parent / conf.bridge.dataset) if conf.bridge else None
        known = find_later_errors(champion, table, estimates)  # which refuses a champion without a calibration
        calibrated = cast("UncertaintyModel", champion.calibrated)
        if new.empty and calibrated.known and np.array_equal(known.errors, calibrated.known.errors):
            yield f"nothing new: {len(table.frame)} results to {newest}"
            return
        models = sorted(set(new[entity].dropna().astype(str)) - set(earlier[entity].dropna().astype(str)))
        named = f" ({', '.join(models[:_MAX_NAMED])}{', ...' if len(models) > _MAX_NAMED else ''})" if models else ""
        yield f"new results: {len(new)} ({earlier[row].nunique()} before, {len(table.frame)} now), to {newest}"
        yield f"new CPU models: {len(models)}{named}"
        # a champion on a bridge answers nothing by itself
        entities = [] if conf.bridge else sorted(set(table.frame[entity].dropna().astype(str)))
        answers = [_answer(champion, entities)]
        champion.calibrated = replace(calibrated, known=known)
        answers.append(_answer(champion, entities))
        _keep(dump, dumps, table.frame[names], {"origin": origin, "newest": newest, "retrieved": str(date.today())})
        save_known_errors(folder, known)
        yield f"{folder}: {len(known.errors)} results after training"
        yield from _list_moved(*answers)


def _fetch(live: SourceFile, given: Path | None, folder: Path, limits: DownloadLimits) -> Path:
    """Download or copy a dump to a folder, and name it by its compression. Raises: UserError."""
    path = folder / live.name
    if given is None:
        try:
            download_file(live, path, limits)
        except DownloadError as error:
            remedy = "try again, or fetch it with a browser and give --from FILE"
            raise UserError("the newest dump must be there", f"{live.url}: {error}", remedy) from None
    elif not given.is_file():
        raise UserError("--from must be a file", f"{given} is none")
    elif given.stat().st_size > live.max_bytes:
        raise UserError(f"{given} must have at most {live.max_bytes} bytes", f"it has {given.stat().st_size}")
    else:
        shutil.copyfile(given, path)
    kind = kind_by_content(path)
    return path.rename(f"{path}.{kind[:2]}") if kind in MAGIC else path


def _standardize(conf: DatasetConf, raw: dict[str, Path], dump: Path, origin: str) -> Table:
    """Return the standard table of a dump. Raises: UserError when it has other columns, or few usable rows."""
    try:
        result = plugins.load_function(conf.target, f"_target_ of {conf.name}")(raw, conf.options)
    except UserError as error:
        fact = f"{error.requirement}: {error.fact}".replace(str(dump), "it")
        raise UserError(f"{origin} must be a dump of {conf.name}", fact, "look into the file") from None
    if len(result.rejected) > MAX_REJECTED * result.rows_in:
        fact = f"{len(result.rejected)} of {result.rows_in} are not, most as {result.rejected['reason'].mode()[0]}"
        raise UserError(f"rows of {origin} must be usable", fact, "look into the file")
    return result.table  # type: ignore[no-any-return]


def _read_earlier(measured: pd.DataFrame, dumps: Path) -> pd.DataFrame:
    """Return the results of a champion's training and of the largest dump that was kept."""
    counts = {path.parent: read_object(path, "rows")["rows"] for path in dumps.glob(f"*/{MANIFEST}")}
    last = [read_parquet(max(counts, key=lambda folder: counts[folder]) / _RESULTS)] if counts else []
    return pd.concat([measured, *last]).astype(dict.fromkeys(measured.columns[:2], "str")).drop_duplicates()


def _check_history(earlier: pd.DataFrame, table: pd.DataFrame, origin: str) -> None:
    """Check that a dump has every earlier result with the same scores. Raises: UserError."""
    now = table[earlier.columns].set_axis(table.index.astype(str)).reindex(earlier.index)
    gone = ~earlier.index.isin(table.index.astype(str))
    changed = (earlier.notna() & ~np.isclose(earlier, now)).any(axis=1).to_numpy() & ~gone
    if gone.any() or changed.any():
        fact = f"{gone.sum()} of {len(earlier)} are gone and {changed.sum()} have another score"
        fact = f"{fact}, as {earlier.index[gone | changed][0]}"
        remedy = "look them up: after a withdrawal, train a champion on the dump"
        raise UserError(f"{origin} must have every earlier result", fact, remedy)


def _answer(champion: Champion, names: list[str]) -> pd.DataFrame:
    """Return estimate, low and high of the usual machine of every entity that a champion knows, by `_KEYS`."""
    entries = [make_entry(number, name, {champion.named_field: name}) for number, name in enumerate(names)]
    frame = predict_batch(entries, champion, PredictOptions(neighbors=0, explain=False)).to_frame()
    answers = frame.dropna(subset="estimate").drop_duplicates(_KEYS).set_index(_KEYS)
    return answers[["estimate", "low", "high"]].astype(float)


def _list_moved(before: pd.DataFrame, after: pd.DataFrame) -> Iterator[str]:
    """Yield the estimates that are outside their intervals of before."""
    both = before.assign(now=after["estimate"])
    moved = both[(both["now"] < both["low"]) | (both["now"] > both["high"])]
    yield f"{len(moved)} of {len(both)} answers moved by more than their interval{':' if len(moved) else ''}"
    for machine, task, _, old, low, high, now in moved.reset_index().itertuples(index=False):
        interval = format_interval(low, high)
        yield f"  {machine}, {task}: {format_number(old)} ({interval}) before, {format_number(now)} now"


def _keep(dump: Path, dumps: Path, results: pd.DataFrame, facts: dict[str, Any]) -> None:
    """Write a dump with its checksum and its results beside the earlier dumps."""
    digest = sha256(dump)
    with atomic_folder(dumps / f"{facts['newest']}-{digest[:12]}") as folder:
        shutil.copyfile(dump, folder / dump.name)
        results.to_parquet(folder / _RESULTS, index=False, write_page_checksum=True)
        file = {"name": dump.name, "sha256": digest, "bytes": dump.stat().st_size}
        write_json(folder / MANIFEST, {**facts, "files": [file], "rows": len(results)})
        record_digests(folder)
