"""Ledger of forecasts: files that are written before the results, named by SHA-256, and scored when results come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.experiment.fitting import evaluated_rows, measured_rows
from perfcast.experiment.forecast_scores import list_scores, summarize_scores
from perfcast.schema.table import Kind, Role, Table, Tag
from perfcast.schema.table_files import read_csv
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, sha256

FOLDER, ENTRIES, SCORES, MISSES = "ledger", "entries.csv", "scores.csv", "misses.csv"
"""Folder of the ledger in the results, and its files beside those of the forecasts."""
ENTRY_COLUMNS = ["entry", "dataset", "predictor", "until", "made", "revision", "sha256", "forecasts"]
"""`until` is the month of the newest result that the champion had; `made` the day on which the file was written;
`revision` the digest of the code. A file made later than the results that it forecasts is a backtest, not a bet."""
_FORECAST = ["estimate", "low", "high"]
_LARGEST = 5
_MIN_PEERS = 3
"""Other results of a machine below which their median says nothing about one."""
_STATED, _MAX_NAMED = 0.95, 2
"""Share of rows that state a feature whose absence counts as a reason, and how many of those are named."""


def add_entry(folder: Path, entry: str, predictions: pd.DataFrame, about: dict[str, str]) -> Path:
    """Write the forecasts of an entry, and its line in the list of entries; return the file.

    Shapes: predictions one row per machine and task, with the columns that `find_results` reads.
    Raises: UserError when the ledger has the entry: forecasts are not made again.
    """
    path = folder / f"{entry}.csv"
    if path.exists():
        raise UserError("forecasts of the ledger are made once", f"{path} exists", "wait for newer results")
    _write(predictions, path)
    entries = read_entries(folder)
    line = {**about, "entry": entry, "sha256": sha256(path), "forecasts": str(len(predictions))}
    _write(pd.concat([entries, pd.DataFrame([line])])[ENTRY_COLUMNS], folder / ENTRIES)
    return path


def _write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")


def read_entries(folder: Path) -> pd.DataFrame:
    """Return the list of entries, all texts; without a row where there is none."""
    path = folder / ENTRIES
    return read_csv(path, dtype="str") if path.is_file() else pd.DataFrame(columns=ENTRY_COLUMNS)


def read_forecasts(folder: Path, entry: str, digest: str) -> pd.DataFrame:
    """Return the forecasts of an entry. Raises: UserError when the file is not that of the list of entries."""
    path = folder / f"{entry}.csv"
    if not path.is_file() or sha256(path) != digest:
        fact = f"{path} has another" if path.is_file() else f"{path} is missing"
        raise UserError(f"forecasts of the ledger must have the sha256 {digest[:12]}", fact, "restore the file")
    return read_csv(path, dtype={"row": "str"})


def find_results(predictions: pd.DataFrame, table: Table, until: str) -> pd.DataFrame:
    """Return the results after a month that have a forecast, with it.

    A forecast is of one result where it names its row, else of all results of its machine: equal IDENTITY and TASK.
    Returns: columns of the scores but the entry; `known` where a result until that month has the entity.
    """
    row, entity, task, time = map(table.column_of, (Tag.ROW, Tag.ENTITY, Tag.TASK, Tag.TIME))
    (target,) = table.select(role=Role.TARGET)
    is_later = (table.frame[time] > pd.Period(until, freq="M").end_time).to_numpy()
    later = table.frame[is_later & measured_rows(table) & evaluated_rows(table)]
    earlier = table.frame[~is_later]
    keys = [row] if row in predictions else [*table.select(tag=Tag.IDENTITY), task]
    named = later.merge(predictions[[*dict.fromkeys([*keys, *_FORECAST])]], on=keys)
    return pd.DataFrame(
        {
            "row": named[row].astype("str"),
            "task": named[task].astype("str"),
            "entity": named[entity].astype("str"),
            "month": named[time].dt.strftime("%Y-%m"),
            "known": named[entity].isin(earlier[entity]),
            "measured": named[target],
            **{name: named[name] for name in _FORECAST},
        }
    )


def score_ledger(folder: Path, table: Table) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the results of every entry of the table's dataset that has some; write their scores and largest misses."""
    entries = read_entries(folder)
    entries = entries[entries["dataset"] == table.dataset]
    summaries = []
    misses = []
    for line in entries.to_dict("records"):
        entry = str(line["entry"])
        predictions = read_forecasts(folder, entry, str(line["sha256"]))
        scores = find_results(predictions, table, str(line["until"]))
        if scores.empty:
            continue
        summaries.append(summarize_scores(scores).assign(entry=entry))
        misses.append(find_misses(scores, table).assign(entry=entry))
        yield entry, scores
    _replace(folder / SCORES, summaries, entries)
    _replace(folder / MISSES, misses, entries)


def list_ledger(folder: Path, table: Table) -> Iterator[str]:
    """Score the entries of a table's dataset, and yield their errors in words."""
    entity = table.column_of(Tag.ENTITY).replace("_", " ")
    for entry, scores in score_ledger(folder, table):
        yield f"{entry} of the ledger: {len(scores)} results"
        yield from (f"  {line}" for line in list_scores(scores, entity))


def _replace(path: Path, parts: list[pd.DataFrame], entries: pd.DataFrame) -> None:
    """Write a table with the new rows of some entries; those of other entries stay."""
    before = (
        [read_csv(path, dtype={"row": "str", "month": "str", "task": "str"}, keep_default_na=False)]
        if path.is_file()
        else []
    )
    others = [frame[~frame["entry"].isin(entries["entry"])] for frame in before]
    filled = [frame for frame in [*others, *parts] if not frame.empty]
    if filled:
        frame = pd.concat(filled, ignore_index=True)
        _write(frame[["entry", *frame.columns.drop("entry")]], path)


def find_misses(scores: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the largest misses, one for each machine, and why: the result, or what was not known of the machine.

    Units: `error` in %.
    """
    row, task = table.column_of(Tag.ROW), table.column_of(Tag.TASK)
    identity = table.select(tag=Tag.IDENTITY)
    error = 100 * (scores["estimate"] / scores["measured"] - 1)
    misses = scores.assign(error=error).sort_values("error", key=abs, ascending=False, kind="stable")
    frame = table.frame.assign(**{row: table.frame[row].astype("str")}).set_index(row)
    machines = frame.loc[misses["row"], identity].astype("str").agg(" | ".join, axis=1).to_numpy()
    misses = misses.assign(machine=machines).drop_duplicates("machine").head(_LARGEST)
    features = table.select(role=Role.FEATURE, kind=Kind.NUMERICAL)
    usual = [name for name in features if frame[name].notna().mean() >= _STATED]
    words = table.column_of(Tag.ENTITY).replace("_", " ")
    reasons = []
    for miss in misses.to_dict("records"):
        stated = frame.loc[miss["row"]]
        same = (frame[[*identity, task]] == stated[[*identity, task]]).all(axis=1) & (frame.index != miss["row"])
        peers = frame.loc[same, table.select(role=Role.TARGET)[0]].dropna()
        median = float(peers.median()) if len(peers) >= _MIN_PEERS else np.nan
        to_peers, to_result = (abs(np.log(miss["estimate"] / each)) for each in (median, miss["measured"]))
        if to_peers < to_result / 2:
            share = 100 * (miss["measured"] / median - 1)
            reasons.append(f"the result: {share:+.0f} % from the median of {len(peers)} others of this machine")
            continue
        known = f"known {words}" if miss["known"] else f"{words} without earlier results"
        missing = [name for name in usual if pd.isna(stated[name])][:_MAX_NAMED]
        reasons.append(f"{known}; no {', '.join(missing)}" if missing else known)
    return misses.assign(why=reasons)[["machine", "task", "row", "month", "measured", "estimate", "error", "why"]]
