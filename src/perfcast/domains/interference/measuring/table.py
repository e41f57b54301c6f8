"""The table of a campaign: labeled rows of each run, compact metrics, and its description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring import campaign
from perfcast.domains.interference.measuring.labels import label_record
from perfcast.domains.interference.measuring.scenarios import PLACEMENTS, TOGETHER, Run
from perfcast.domains.interference.measuring.workloads import load_workload
from perfcast.domains.interference.sources.host_interference import LABELS, PLACES
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, write_json

NAME = "host_interference"
DIGITS = 3
"""Significant digits of a metric: counters of a second are noisier."""
MIN_VARYING = 0.005
"""Share of rows that must differ from the most frequent value, else a metric counts as constant."""


def measure_interference(settings: campaign.Settings, progress: campaign.Progress) -> list[str]:
    """Run the campaign, write table and description, and return notes for the user.

    Raises: UserError when nothing could be measured.
    """
    facts = campaign.run_campaign(settings, progress)
    frame, sampler_shares = collect_rows(settings.runs_folder)
    if frame.empty:
        why = facts["failures"][0] if facts["failures"] else "the time ended before the first run"
        raise UserError("a campaign needs a finished run", why, "give a larger --budget-minutes")
    table, dropped = compact_metrics(frame)
    quality = {**summarize_quality(frame, facts, sampler_shares), **dropped}
    write_table(settings.out, table, quality)
    return list_notes(table, quality)


def collect_rows(folder: Path) -> tuple[pd.DataFrame, list[float]]:
    """Return the rows of every run, and the sampler's share of a core in each."""
    records = [campaign.read_record(path) for path in campaign.finished_runs(folder).values()]
    begin = min((record["started"] for record in records), default=0.0)
    parts = [(label_record(record, begin=begin), Run.from_json(record["run"]), record["cost"]) for record in records]
    rows = [frame for frame, _, _ in parts if len(frame)] or [pd.DataFrame(columns=[*PLACES, *LABELS])]
    return pd.concat(rows, ignore_index=True), [cost / run.seconds for _, run, cost in parts]


def compact_metrics(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Round metrics and drop constant ones; return the table, and what was dropped.

    Rows are not selected, and labels are not looked at.
    """
    fixed = [*PLACES, *LABELS]
    metrics = frame[[name for name in frame if name not in fixed]].sort_index(axis=1)
    varying = [name for name in metrics if is_varying(metrics[name])]
    labels = frame[fixed].copy()
    for name in LABELS[:-1]:
        values = labels[name].astype(float)
        labels[name] = values.round(4).astype("float32") if name.startswith("degradation") else round_digits(values, 4)
    table = pd.concat([labels, metrics[varying].apply(round_digits)], axis=1)
    return table, {"metrics": len(varying), "constant_metrics": len(metrics.columns) - len(varying)}


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


def summarize_quality(frame: pd.DataFrame, facts: Mapping[str, Any], sampler_shares: Sequence[float]) -> dict[str, Any]:
    """Return noise of repeated references, steal, rejected labels and why, and cost of the sampler, as JSON values.

    Args:
        frame: Labeled rows, rejected ones included.
        facts: Facts of the campaign.
        sampler_shares: Share of one core that the sampler took, by run.
    """
    accepted = frame[frame["rejected"] == ""]
    together = accepted[accepted["phase"] == TOGETHER]
    reasons = Counter(reason for text in frame["rejected"] for reason in str(text).split("+") if reason)
    by_column = {
        f"accepted_rows_by_{name}": {str(key): int(count) for key, count in accepted[name].value_counts().items()}
        for name in ("placement", "scenario")
    }
    return {
        **facts,
        "rows": len(frame),
        "accepted_rows": len(accepted),
        "accepted_rows_together": len(together),
        "runs": int(frame["run"].nunique()),
        "rejected": dict(sorted(reasons.items())),
        "sampler_share_of_a_core": _round(pd.Series(sampler_shares, dtype=float).mean()),
        "steal_mean": _round(frame["stat.cpu.steal"].mean()) if "stat.cpu.steal" in frame else None,
        **by_column,
        "degradation": {
            str(name): {f"q{round(100 * level)}": _round(rows.quantile(level)) for level in (0.1, 0.5, 0.9)}
            for name, rows in together.groupby("placement")["degradation"]
        },
        "victims": {str(name): _describe_victim(rows) for name, rows in frame.groupby("victim")},
    }


def _describe_victim(rows: pd.DataFrame) -> dict[str, Any]:
    accepted = rows[rows["rejected"] == ""]
    return {
        "accepted_rows": len(accepted),
        "reference_spread_median": _round(rows.drop_duplicates(["run", "tenant"])["reference_spread"].median()),
        "reference_noise_between_runs": reference_noise(rows),
        "degradation_median": _round(accepted.loc[accepted["phase"] == TOGETHER, "degradation"].median()),
        "operations_per_second_alone": _round(accepted.loc[accepted["intensity"] == 1, "throughput_alone"].median()),
    }


def reference_noise(rows: pd.DataFrame) -> float | None:
    """Return how references of one victim differ between runs: standard deviation over mean, median over kinds.

    References of one kind have the same intensity, and processors, quota and memory of the same kind.
    """
    kinds = rows.assign(kind=rows["placement"].replace({"other_core": "same_core"}))
    keys = ["intensity", "kind", "quota", "memory_slack_mib"]
    means = kinds.groupby([*keys, "run"], dropna=False)["throughput_alone"].mean()
    groups = means.groupby(level=keys, dropna=False)
    return _round((groups.std() / groups.mean()).median())


def _round(value: Any) -> float | None:
    """Return four digits as a value of JSON, None where there is no number."""
    return float(f"{float(value):.4g}") if np.isfinite(value) else None


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
