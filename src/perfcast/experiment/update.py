"""Newer official results: what a live dump adds, and what a champion that learns from it answers differently.

Forecasts of the new results are frozen before the champion learns these; a page has those of all dumps.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.config.conf_files import read_conf
from perfcast.config.dataset_conf import DatasetConf, read_dataset
from perfcast.data.standardized import Standardized
from perfcast.experiment.fitting import evaluated_rows, measured_rows
from perfcast.experiment.forecast_scores import GATE, LABEL, list_scores, summarize_labels, summarize_scores
from perfcast.experiment.ledger import FOLDER, list_ledger
from perfcast.experiment.rolling import find_later_errors, save_known_errors
from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import Champion
from perfcast.inference.champion_files import load_champion
from perfcast.inference.machine_files import make_entry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.suites import Suites
from perfcast.schema.table import Kind, Role, Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.sources.bounded_files import MAGIC, kind_by_content
from perfcast.sources.download import DownloadError, DownloadLimits, download_file
from perfcast.sources.locations import present_sources
from perfcast.sources.source_spec import MANIFEST, SourceFile, parse_source
from perfcast.uncertainty.conformal import LEVEL
from perfcast.uncertainty.levels import entity_slices
from perfcast.utils.errors import UserError, printable
from perfcast.utils.io import atomic_folder, read_object, sha256, temporary_folder, write_json, write_text
from perfcast.utils.result_digests import record_digests
from perfcast.utils.terminal_tables import format_interval, format_number

if TYPE_CHECKING:
    from perfcast.uncertainty.conformal import UncertaintyModel
    from perfcast.uncertainty.levels import KnownErrors

LIMITS = DownloadLimits(read=120.0, retries=1)
"""The publisher makes the file on request, which takes a while."""
MAX_REJECTED = 0.25
"""Share of the rows of a dump that may be unusable; of those at hand 0.2 to 14 % are."""
_RESULTS = "results.parquet"
_KEYS = ["machine", "task", "target"]
_MAX_NAMED, _MAX_LETTERS = 8, 60


def update_champion(
    folder: Path,
    dataset: str,
    given: Path | None,
    *,
    results: Path,
    project: Path,
    agree: Callable[[str], bool],
    limits: DownloadLimits = LIMITS,
) -> Iterator[str]:
    """Learn the newest official results without training; yield in lines what is done and what it changes.

    The dump is `given`, or fetched from the address of the source. It is kept in <results>/dumps/<source>, with its
    checksum, beside earlier ones. Nothing is written unless it has every earlier result with the same score, and
    `agree` says yes to whatever looks wrong about the new ones.
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
    ingested = results / "raw"  # a champion from elsewhere has no such folder
    raw = present_sources(ingested, conf.sources.optional) if ingested.is_dir() else {}
    with temporary_folder() as temporary:
        origin = str(given or live.url)
        yield f"{dataset}: reading {origin}"
        dump = _fetch(live, given, temporary, limits)
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
            if dumps.is_dir():  # an update may have ended before it wrote the page
                write_page(dumps, dataset)
            return
        yield f"new results: {len(new)} ({earlier[row].nunique()} before, {len(table.frame)} now), to {newest}"
        yield from _list_labels(table, is_new)
        tables, until, doubts = {_RESULTS: table.frame[names]}, champion.results_until, list[str]()
        if not new.empty:
            tables[PREDICTIONS] = predict_new(champion, table, is_new)
            doubts += _doubt_results(tables[PREDICTIONS])
            yield f"forecasts of {until}, results to {newest}: {len(tables[PREDICTIONS])} results"
            yield from (f"  {line}" for line in list_scores(tables[PREDICTIONS], _words(entity)))
        moved, count, later = _learn(champion, known, table)
        yield from _list_moved(moved, count)
        doubts += _doubt_moves(len(moved), later)
        _require_yes(doubts, agree, origin)
        frozen = {"predictor": champion.name, "until": until, "entity": _words(entity)}
        about = {"origin": origin, "newest": newest, "retrieved": str(date.today()), "frozen": frozen}
        yield f"{_keep(dump, dumps, standardized.rejected, tables, about)}: the dump, and what was rejected of it"
        save_known_errors(folder, known)
        yield from _score_forecasts(dumps, results / FOLDER, table)
        yield f"{folder}: {len(known.errors)} results after training"


def _score_forecasts(dumps: Path, ledger: Path, table: Table) -> Iterator[str]:
    """Write the page of all dumps and the scores of the ledger, and yield the latter."""
    yield f"{write_page(dumps, table.dataset)}: forecasts of every dump and what was measured"
    yield from list_ledger(ledger, table)


def _fetch(live: SourceFile, given: Path | None, folder: Path, limits: DownloadLimits) -> Path:
    """Download or copy a dump to a folder, and name it by its compression. Raises: UserError."""
    # the folder itself is locked by this command, and a download locks the folder of its file
    path = folder / "dump" / live.name
    path.parent.mkdir()
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
    frame = predict_machines(entries, Suites(champion), PredictOptions(neighbors=0, explain=False)).to_frame()
    answers = frame.dropna(subset="estimate").drop_duplicates(_KEYS).set_index(_KEYS)
    return answers[["estimate", "low", "high"]].astype(float)


def _learn(champion: Champion, known: KnownErrors, table: Table) -> tuple[pd.DataFrame, int, int]:
    """Let a champion know errors of a dump's later results.

    Returns: the answers that moved, see `_find_moved`; the number of all answers, and of those for entities with later
    results.
    """
    row, entity = map(table.column_of, (Tag.ROW, Tag.ENTITY))
    named = table.frame.dropna(subset=[entity])
    entities, rows = named[entity].astype(str), named[row].astype(str)
    learned = champion.reference_data.measured.frame[row].astype(str)
    before = _answer(champion, sorted(set(entities)))
    champion.calibrated = replace(cast("UncertaintyModel", champion.calibrated), known=known)
    after = _answer(champion, sorted(set(entities)))
    later = _answer(champion, sorted(set(entities[~rows.isin(learned)])))
    return _find_moved(before, after), len(before), len(later)


def _require_yes(doubts: Sequence[str], agree: Callable[[str], bool], origin: str) -> None:
    """Ask about doubts, if there are any. Raises: UserError where the answer is no."""
    text = "; ".join(doubts)
    if doubts and not agree(text):
        raise UserError(f"new results of {origin} must be plausible", text, "look into it, or give --yes")


def _find_moved(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return the answers whose estimate `now` is outside their interval of before."""
    both = before.assign(now=after["estimate"])
    return both[(both["now"] < both["low"]) | (both["now"] > both["high"])]


def _list_moved(moved: pd.DataFrame, count: int) -> Iterator[str]:
    """Yield the answers that moved, of a number of them."""
    yield f"{len(moved)} of {count} answers moved by more than their interval{':' if len(moved) else ''}"
    for machine, task, _, old, low, high, now in moved.reset_index().itertuples(index=False):
        interval = format_interval(low, high)
        yield f"  {machine}, {task}: {format_number(old)} ({interval}) before, {format_number(now)} now"


def _doubt_results(predictions: pd.DataFrame) -> Iterator[str]:
    """Yield a line where more than half of the known set-ups are outside their 99 % interval."""
    gate = predictions["agrees"].dropna()
    if 2 * (outside := int((gate == 0).sum())) > len(gate):
        yield f"{outside} of {len(gate)} known set-ups lie outside the {100 * GATE:g} % interval"


def _doubt_moves(moved: int, later: int) -> Iterator[str]:
    """Yield a line where more answers moved than chance allows.

    Of `later` answers, those of entities with new results, at most one in ten should leave its 90 % interval.
    """
    from scipy.stats import binom

    allowed = int(binom.ppf(GATE, later, 1 - LEVEL))
    if moved > allowed:
        yield f"{moved} answers moved by more than their interval, where chance allows {allowed}"


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


PREDICTIONS, PAGE = "predictions.parquet", "forecasts.md"
_TITLE = f"""# Forecasts and later results of {{}}

Every section is a dump. The champion forecast its new results before it learned them, from the set-ups that they state;
facts of hardware are those of the version at hand. Errors are those of the estimate in % of the result, coverage is the
share of results inside their {100 * LEVEL:g} % intervals. Forecasts are estimates, not official results.
"""


def predict_new(champion: Champion, table: Table, is_new: np.ndarray) -> pd.DataFrame:
    """Return the forecasts of new results by a champion that has not learned them; only those that metrics count.

    A result is its first score.

    Shapes: is_new (rows of the table,) bool -> one row per result: row, task, entity, month, `known` where an earlier
    result has the entity, measured, estimate, low, high, and `agrees`: 1 where the 99 % interval holds the result, 0
    where not, NaN where no earlier result has the set-up. Without a known design estimate and ends are NaN. Labels are
    the slices of the entity, such as its vendor, and the columns with the tag LEVEL, such as the compiler.
    """
    row, entity, task, time = map(table.column_of, (Tag.ROW, Tag.ENTITY, Tag.TASK, Tag.TIME))
    setup = [task, *table.select(tag=Tag.IDENTITY)]
    new, old = table.frame[is_new & measured_rows(table) & evaluated_rows(table)], table.frame[~is_new]
    base = Bridge(champion, "made", {name: name for name in champion.tasks})
    made, wide = (base.estimate(new, level) for level in (LEVEL, GATE))
    measured = new[champion.predictor.targets_[0]]
    agrees = measured.between(wide["made_low"], wide["made_high"]).astype(float)
    is_known = pd.MultiIndex.from_frame(new[setup].astype(str)).isin(pd.MultiIndex.from_frame(old[setup].astype(str)))
    frame: pd.DataFrame = new[[row, task, entity]].astype(str).set_axis(["row", "task", "entity"], axis=1)
    frame = frame.assign(month=new[time].dt.strftime("%Y-%m"), known=frame["entity"].isin(old[entity].astype(str)))
    frame["measured"] = measured
    for name in ("estimate", "low", "high"):
        frame[name] = made[f"made_{name}"]
    for name in (*entity_slices(table), *table.select(tag=Tag.LEVEL)):
        frame[f"{LABEL}{name}"] = new[name].astype("str")
    frame["agrees"] = agrees.where(is_known & wide["made_low"].notna())
    return frame.reset_index(drop=True)


def write_page(dumps: Path, dataset: str) -> Path:
    """Write the page of the forecasts of all dumps that were kept in a folder, the oldest first; return its path."""
    parts = [_TITLE.format(dataset)]
    for path in sorted(dumps.glob(f"*/{PREDICTIONS}")):
        facts, predictions = read_object(path.parent / MANIFEST, "newest", "frozen"), read_parquet(path)
        entity = facts["frozen"]["entity"]
        parts.append(f"## Forecasts of {facts['frozen']['until']}, results to {facts['newest']}\n")
        by = f"{facts['frozen']['predictor']}, retrieved {facts['retrieved']} from {facts['origin']}"
        parts.append(f"Champion {by}, sha256 {facts['files'][0]['sha256']}.\n")
        parts += [f"- {line}" for line in list_scores(predictions, entity)]
        parts += _list_table(["task", "month"], summarize_scores(predictions), entity)
        by_label = summarize_labels(predictions)
        if len(by_label):
            parts += _list_table(["label", "value"], by_label.assign(label=by_label["label"].map(_words)), entity)
        parts.append("")
    write_text(dumps / PAGE, "\n".join(parts))
    return dumps / PAGE


def _list_table(names: list[str], scores: pd.DataFrame, entity: str) -> Iterator[str]:
    """Yield the lines of a table of scores by the columns of some names."""
    header = [*names, entity, "results", f"{entity}s", "MAPE %", "MedAPE %", "coverage %"]
    yield f"\n| {' | '.join(header)} |\n| --- | --- | --- |{' ---: |' * 5}"
    for line in scores.to_dict("records"):
        about = [*(str(line[name] or "all") for name in names), "known" if line["known"] else "new"]
        errors = (f"{line['mape']:.1f}", f"{line['medape']:.1f}", f"{line['coverage']:.0f}")
        yield f"| {' | '.join([*about, str(line['results']), str(line['entities']), *errors])} |"
