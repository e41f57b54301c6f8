"""Newer official results: what a live dump adds, and what a champion that learns from it answers differently."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
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
from perfcast.data.standardized import Standardized
from perfcast.experiment.dump_scores import PREDICTIONS, list_scores, predict_new, write_page
from perfcast.experiment.rolling import find_later_errors, save_known_errors
from perfcast.inference.champion import Champion, load_champion
from perfcast.inference.machine_files import make_entry
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.schema.table import Kind, Role, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.sources.bounded_files import MAGIC, kind_by_content
from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.locations import present_sources
from perfcast.sources.source_spec import MANIFEST, SourceFile, parse_source
from perfcast.utils.errors import UserError, printable
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
_MAX_NAMED, _MAX_LETTERS = 8, 60


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
        standardized = _standardize(conf, {**raw, name: dump.parent}, dump, origin)
        table = standardized.table
        yield from _list_rows(standardized)
        entity, row, time = map(table.column_of, (Tag.ENTITY, Tag.ROW, Tag.TIME))
        names = [row, entity, *table.select(role=Role.TARGET)]
        earlier = _read_earlier(champion.reference_data.measured.frame[names], dumps)
        _check_history(earlier.set_index(row).drop(columns=entity), table.frame.set_index(row), origin)
        is_new = ~table.frame[row].astype(str).isin(earlier[row]).to_numpy()
        new, newest = table.frame[is_new], f"{table.frame[time].max():%Y-%m}"
        if newest > f"{date.today():%Y-%m}":
            raise UserError(f"{origin} must have results of the past", f"one is of {newest}", "check the date and file")
        known = find_later_errors(champion, table)  # which refuses a champion without a calibration
        calibrated = cast("UncertaintyModel", champion.calibrated)
        if new.empty and calibrated.known and np.array_equal(known.errors, calibrated.known.errors):
            yield f"nothing new: {len(table.frame)} results to {newest}"
            return
        yield f"new results: {len(new)} ({earlier[row].nunique()} before, {len(table.frame)} now), to {newest}"
        yield from _list_labels(table, is_new)
        tables, until = {_RESULTS: table.frame[names]}, champion.results_until
        if not new.empty:
            tables[PREDICTIONS] = predict_new(champion, table, is_new)
            yield f"forecasts of {until}, results to {newest}: {len(tables[PREDICTIONS])} results"
            yield from (f"  {line}" for line in list_scores(tables[PREDICTIONS], _words(entity)))
        entities = sorted(set(table.frame[entity].dropna().astype(str)))
        answers = [_answer(champion, entities)]
        champion.calibrated = replace(calibrated, known=known)
        answers.append(_answer(champion, entities))
        frozen = {"predictor": champion.name, "until": until, "entity": _words(entity)}
        about = {"origin": origin, "newest": newest, "retrieved": str(date.today()), "frozen": frozen}
        yield f"{_keep(dump, dumps, standardized.rejected, tables, about)}: the dump, and what was rejected of it"
        save_known_errors(folder, known)
        yield f"{write_page(dumps, dataset)}: forecasts of every dump and what was measured"
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


def _standardize(conf: DatasetConf, raw: dict[str, Path], dump: Path, origin: str) -> Standardized:
    """Return the table of a dump and its accounting. Raises: UserError for other columns, or few usable rows."""
    try:
        result: Standardized = plugins.load_function(conf.target, f"_target_ of {conf.name}")(raw, conf.options)
    except UserError as error:
        fact = f"{error.requirement}: {error.fact}".replace(str(dump), "it")
        raise UserError(f"{origin} must be a dump of {conf.name}", fact, "look into the file") from None
    if len(result.rejected) > MAX_REJECTED * result.rows_in:
        fact = f"{len(result.rejected)} of {result.rows_in} are not, most as {result.rejected['reason'].mode()[0]}"
        raise UserError(f"rows of {origin} must be usable", fact, "look into the file")
    return result


def _list_rows(result: Standardized) -> Iterator[str]:
    """Yield what became of the rows of a dump, the rejected ones by reason, the newest first, and what lacks facts."""
    count, rejected = len(result.table.frame), result.rejected
    yield f"rows: {result.rows_in} read = {count} kept + {result.rows_merged} merged + {len(rejected)} rejected"
    for reason, details in rejected.groupby("reason")["detail"]:
        yield f"  {reason}: {_name(sorted(details, reverse=True))}"
    for name, counts in result.quality.items():
        if name.startswith("unknown_") and counts:
            yield f"  {_words(name)}: {_name(counts)}"


def _list_labels(table: Table, is_new: np.ndarray) -> Iterator[str]:
    """Yield the new entities, further labels that no earlier result has, and results without what all earlier state."""
    new, old = table.frame[is_new], table.frame[~is_new]
    for column in table.columns:
        name, is_entity = column.name, Tag.ENTITY in column.tags
        labels = sorted({*new[name].dropna().astype(str)} - {*old[name].dropna().astype(str)})
        if is_entity:
            yield f"new {_words(name)}s: {_name(labels)}"
        elif column.role is Role.FEATURE and column.kind is Kind.CATEGORICAL and labels:
            yield f"new in {name}: {_name(labels)}"
        if column.role is Role.FEATURE and old[name].notna().all() and new[name].isna().any():
            yield f"without {name}: {_name(new.loc[new[name].isna(), table.column_of(Tag.ROW)])}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _name(labels: Collection[Any]) -> str:
    """Return the number of labels and the first of them."""
    shown = [printable(str(label))[:_MAX_LETTERS] for label in [*labels][:_MAX_NAMED]]
    named = ", ".join([*shown, *(["..."] if len(labels) > len(shown) else [])])
    return f"{len(labels)} ({named})" if shown else "0"


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


def _keep(dump: Path, dumps: Path, rejected: pd.DataFrame, tables: dict[str, pd.DataFrame], about: Any) -> Path:
    """Write a dump beside the earlier ones, with its checksum, rejected rows and tables; return its folder."""
    digest = sha256(dump)
    path = dumps / f"{about['newest']}-{digest[:12]}"
    if path.exists():  # another champion learns it: the forecasts are those of the first
        return path
    with atomic_folder(path) as folder:
        shutil.copyfile(dump, folder / dump.name)
        rejected.to_csv(folder / "rejected.csv", index=False, lineterminator="\n")
        for name, table in tables.items():
            table.to_parquet(folder / name, index=False, write_page_checksum=True)
        file = {"name": dump.name, "sha256": digest, "bytes": dump.stat().st_size}
        write_json(folder / MANIFEST, {**about, "files": [file], "rows": len(tables[_RESULTS])})
        record_digests(folder)
    return path
