"""The table of a campaign: labeled rows of the best attempt of each run, compact metrics, and its description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring.campaign import Progress, Settings, run_campaign
from perfcast.domains.interference.measuring.labels import LABELS, PLACES, label_record
from perfcast.domains.interference.measuring.quality import summarize_quality
from perfcast.domains.interference.measuring.run_files import finished_runs, read_record
from perfcast.domains.interference.measuring.scenarios import PLACEMENTS
from perfcast.domains.interference.measuring.workloads import load_workload
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, write_json

NAME = "host_interference"
DIGITS = 3
"""Significant digits of a metric: counters of a second are noisier."""
MIN_VARYING = 0.005
"""Share of rows that must differ from the most frequent value, else a metric counts as constant."""
SAME = 0.999_99
"""Correlation above which a metric repeats an earlier one."""


def measure_interference(settings: Settings, progress: Progress) -> list[str]:
    """Run the campaign, write table and description, and return notes for the user.

    Raises: UserError when nothing could be measured.
    """
    campaign = run_campaign(settings, progress)
    frame, sampler_shares = collect_rows(settings.runs_folder, settings.max_spread)
    if frame.empty:
        why = campaign["failures"][0] if campaign["failures"] else "the time ended before the first run"
        raise UserError("a campaign needs a finished run", why, "give a larger --budget-minutes")
    table, dropped = compact_metrics(frame)
    quality = {**summarize_quality(frame, campaign, sampler_shares), **dropped}
    write_table(settings.out, table, quality)
    return list_notes(table, quality)


def collect_rows(folder: Path, max_spread: float) -> tuple[pd.DataFrame, list[float]]:
    """Return the rows of every run in its steadiest attempt, and the sampler's share of a core in each.

    The choice looks at rejections alone, never at degradation.
    """
    best: dict[int, tuple[float, pd.DataFrame, float]] = {}
    records = [read_record(path) for path in finished_runs(folder).values()]
    begin = min((record["started"] for record in records), default=0.0)
    for record in records:
        rows = label_record(record, begin=begin, max_spread=max_spread)
        if rows.empty:
            continue
        number, share = int(rows["run"].iloc[0]), float((rows["rejected"] != "").mean())
        if number not in best or share < best[number][0]:
            seconds = max(entry["end"] for entry in record["run"]["activities"])
            best[number] = share, rows, record["cost"] / seconds
    if not best:
        return pd.DataFrame(columns=[*PLACES, *LABELS]), []
    ordered = [best[number] for number in sorted(best)]
    return pd.concat([rows for _, rows, _ in ordered], ignore_index=True), [cost for _, _, cost in ordered]


def compact_metrics(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Round metrics and drop constant and repeated ones; return the table, and what was dropped.

    Rows are not selected, and labels are not looked at.
    """
    fixed = [*PLACES, *LABELS]
    metrics = frame[[name for name in frame if name not in fixed]].sort_index(axis=1)
    varying = [name for name in metrics if is_varying(metrics[name])]
    repeated = find_repeated(metrics[varying])
    retained = [name for name in varying if name not in repeated]
    rounded = metrics[retained].apply(round_digits)
    labels = frame[fixed].copy()
    for name in (
        "throughput",
        "throughput_alone",
        "latency_p99",
        "latency_p99_alone",
        "reference_spread",
        "reference_spread_p99",
        "late",
    ):
        labels[name] = round_digits(labels[name].astype(float), 4)
    for name in ("degradation", "degradation_p99"):
        labels[name] = labels[name].astype(float).round(4).astype("float32")
    table = pd.concat([labels, rounded], axis=1)
    return table, {
        "metrics": len(retained),
        "constant_metrics": len(metrics.columns) - len(varying),
        "repeated_metrics": len(repeated),
    }


def is_varying(values: pd.Series) -> bool:
    """Return whether a metric takes other values than its most frequent one in enough rows; absence is a value too."""
    frequent = values.value_counts(dropna=False, normalize=True)
    return bool(values.notna().any() and frequent.iloc[0] <= 1 - MIN_VARYING)


def round_digits(values: pd.Series, digits: int = DIGITS) -> pd.Series:
    """Return values with some significant digits, in single precision; absent ones stay absent."""
    numbers = values.to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(numbers))))
        rounded = np.where(np.isfinite(scale), np.round(numbers * scale) / scale, numbers)
    return pd.Series(rounded, values.index, name=values.name, dtype="float32")


def find_repeated(metrics: pd.DataFrame) -> set[str]:
    """Return metrics that equal a multiple of an earlier one, absent in the same rows."""
    repeated: set[str] = set()
    numbers = metrics.to_numpy(float)
    missing = np.isnan(numbers)
    filled = np.where(missing, 0.0, numbers)
    centered = filled - filled.mean(axis=0)
    norms = np.linalg.norm(centered, axis=0)
    unit = np.divide(centered, norms, out=np.zeros_like(centered), where=norms > 0)
    close = np.triu(np.abs(unit.T @ unit) > SAME, 1)
    for first, second in zip(*np.nonzero(close), strict=True):
        names = metrics.columns[first], metrics.columns[second]
        if names[0] not in repeated and (missing[:, first] == missing[:, second]).all():
            repeated.add(names[1])
    return repeated


def write_table(out: Path, table: pd.DataFrame, quality: dict[str, Any]) -> None:
    """Write host_interference.parquet and host_interference.json into a folder."""
    from perfcast.microbench.machine import describe_machine

    with atomic_path(out / f"{NAME}.parquet") as path:
        table.to_parquet(path, index=False, compression="zstd", compression_level=15)
    meanings = {name: load_workload(name).MEANING for name in quality["design"]["workloads"]}
    write_json(
        out / f"{NAME}.json",
        {**describe_machine(), "quality": quality, "workloads": meanings, "placements": PLACEMENTS},
    )


def list_notes(table: pd.DataFrame, quality: dict[str, Any]) -> list[str]:
    """Return notes on size, noise and what is missing."""
    notes = [
        f"measured {quality['rows']} labeled seconds of {quality['runs']} runs with {quality['metrics']} metrics; "
        f"{quality['accepted_rows']} have steady references",
    ]
    for name, quantiles in quality["degradation"].items():
        notes.append(f"{name}: median degradation together {100 * quantiles['q50']:.0f} %")
    if quality["rejected"]:
        notes.append("rejected: " + ", ".join(f"{count} {why}" for why, count in quality["rejected"].items()))
    for name, reason in quality["impossible_placements"].items():
        notes.append(f"{name} is missing: {reason}")
    if not quality["awake_processors"]:
        notes.append("processors may sleep: servers can be faster beside neighbors than alone")
    notes += quality["failures"][:5]
    if (missing := quality["planned_runs"] - quality["runs"]) > 0:
        notes.append(f"{missing} of {quality['planned_runs']} runs are missing: start again to continue")
    return notes
