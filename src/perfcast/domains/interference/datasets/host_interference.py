"""Interference on one machine: one row per second of a victim and quantity, with the last seconds of every metric.

The target is the share of the throughput that the victim has alone, or of its tail latency alone over that measured; 1
minus the share is the degradation. What the victim reports is a label and never a feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import FACTS, quarantine, read_machine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, require_rows
from perfcast.domains import read_columns
from perfcast.domains.interference.sources.host_interference import (
    MACHINE,
    REMEDY,
    TABLE,
    metric_names,
    read_seconds,
)
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import Column, Kind, Role, build_table

SOURCE = "host_interference"
WINDOW_SECONDS = 10
MIN_SHARE = 0.01
"""Share of a victim that did nothing in a second: predictors learn logarithms, and a tenth of a point is no error."""
LARGEST_SHARE = 3.0
"""A larger share is no interference: the reference is wrong."""
MAX_TAIL_SPREAD = 0.2
"""Relative difference of the latencies alone, before and after, above which a label of the latency is quarantined.

Latencies vary more than the throughput, whose bound the measurement applies.
"""
ALONE = "alone."
"""Before the name of a metric: its mean over the earlier seconds alone."""
THROUGHPUT = "throughput"
LATENCY = "latency_p99"
SAME_CORE = "same_core"
PINNED = "other_core"
QUOTA = "quota"
"""Placements of the measurement that the columns depend on."""
GROUPS = {
    "allowed": "processors",
    "stat": "processors",
    "load": "processors",
    "vmstat": "memory",
    "meminfo": "memory",
    "pressure": "pressure",
    "disk": "disks",
    "net": "network",
    "perf": "counters",
    "interrupt": "interrupts",
    "softirq": "interrupts",
    "group": "victim",
    "others": "neighbors",
    "host": "shared_limits",
}
"""First part of a metric's name -> group of its columns."""
_SUBJECTS = {
    "group": "control group of the victim",
    "others": "sum over the neighbors' control groups",
    "host": "group whose limits all tenants share",
    "allowed": "processors that the victim may use",
}


def declare_metric(name: str) -> Column:
    """Declare the window of a metric."""
    first, _, metric = name.partition(".")
    meaning = f"{metric or name} of the {_SUBJECTS.get(first, f'machine ({first})')}, the last seconds"
    return Column(
        name,
        Kind.SEQUENCE,
        Role.FEATURE,
        GROUPS.get(first, "other_metrics"),
        meaning=meaning,
    )


COLUMNS = read_columns(__package__, "columns.csv", "host_interference")


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the labeled seconds. An input row is one quantity of a second.

    Rows whose labels the measurement rejected are quarantined, but their metrics are part of windows. Seconds alone are
    references: their share is 1 up to noise by definition, so they train and do not count in the metrics.

    Raises:
        UserError: A file is missing or broken.
    """
    del options
    seconds = read_seconds(raw[SOURCE] / TABLE).reset_index(drop=True)
    machine = read_machine(SOURCE, raw[SOURCE] / MACHINE, REMEDY)
    of_throughput = _labels(seconds, THROUGHPUT, "")
    of_latency = _labels(seconds, LATENCY, "_p99")
    labels = pd.concat([of_throughput, of_latency], ignore_index=True)
    accepted, rejections = _quarantine(labels)
    require_rows(len(accepted), SOURCE, rejections)
    accepted = accepted.sort_values(["position", "quantity"], kind="stable").reset_index(drop=True)

    places = window_positions(seconds)[accepted["position"].to_numpy()]
    metrics = metric_names(seconds)
    windows = {name: from_matrix(take_windows(seconds[name], places)) for name in metrics}
    described = _describe(seconds, accepted, float(machine.get("cores") or 1))
    columns = (*COLUMNS, *(declare_metric(name) for name in metrics))
    facts = {"machine": {name: machine[name] for name in FACTS if machine.get(name) is not None}}
    table = build_table(SOURCE, pd.DataFrame({**described, **windows}), columns, facts, copy=False)
    frame = table.frame
    return Standardized(
        table=table,
        rejected=build_rejected_frame(rejections),
        rows_in=len(labels),
        quality={
            "runs": int(frame["run"].nunique()),
            "victims": int(frame["victim"].nunique()),
            "metrics": len(metrics),
            "window_seconds": WINDOW_SECONDS,
            "seconds_without_tail_latency": int(seconds["degradation_p99"].isna().sum()),
            "shares_below_least": int((accepted["stated"] < MIN_SHARE).sum()),
            "rows_by_placement": _count(frame["placement"]),
            "rows_by_scenario": _count(frame["scenario"]),
        },
    )


def window_positions(seconds: pd.DataFrame, length: int = WINDOW_SECONDS) -> np.ndarray:
    """Return where the last seconds of every row stand, the row itself last; -1 where the run has no such second.

    Shapes: `seconds` with run, attempt, tenant and second, (n,) -> (n, length) int.
    """
    group = seconds.groupby(["run", "attempt", "tenant"], sort=False).ngroup().to_numpy()
    second = seconds["second"].to_numpy(dtype=np.int64)
    width = int(second.max(initial=0)) + 1 + length
    keys = group * width + second + length
    order = np.argsort(keys, kind="stable")
    wanted = keys[:, None] - np.arange(length - 1, -1, -1)
    near = np.searchsorted(keys[order], wanted).clip(max=len(keys) - 1)
    return np.where(keys[order][near] == wanted, order[near], -1)


def take_windows(values: pd.Series, positions: np.ndarray) -> np.ndarray:
    """Return the values at positions, NaN at -1. Shapes: (n,), (m, length) -> (m, length) float32."""
    padded = np.append(values.to_numpy(dtype="float32", na_value=np.nan), np.float32(np.nan))
    padded[~np.isfinite(padded)] = np.nan
    return np.asarray(padded[positions])


def _labels(seconds: pd.DataFrame, quantity: str, ending: str) -> pd.DataFrame:
    """Return the labels of a quantity, for the seconds that have its latency."""
    labeled = seconds[seconds["degradation_p99"].notna()] if ending else seconds
    return pd.DataFrame(
        {
            "position": labeled.index,
            "line": labeled.index + 1,
            "quantity": quantity,
            "stated": (1 - labeled[f"degradation{ending}"]).astype(float),
            "spread": labeled[f"reference_spread{ending}"].astype(float),
            "rejected": labeled["rejected"].fillna("").astype(str),
        }
    )


def _quarantine(labels: pd.DataFrame) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each label under the first rule that it breaks; return the others and the rejections."""
    stated = labels["stated"]
    why = labels["rejected"]
    described = "share: " + stated.round(4).astype("str")
    spread = "spread: " + labels["spread"].round(4).astype("str")
    is_latency = labels["quantity"] == LATENCY
    is_unsteady = is_latency & ~(labels["spread"] <= MAX_TAIL_SPREAD)
    rules = {
        "unsteady_reference": why.where(why.str.contains("reference")),
        "late_sample": why.where(why.str.contains("late")),
        "stolen_time": why.where(why.str.contains("steal")),
        "rejected_by_measurement": why.where(why != ""),
        "not_a_number": described.where(~np.isfinite(stated)),
        "out_of_bounds": described.where(~stated.between(0, LARGEST_SHARE)),
        "unsteady_tail_reference": spread.where(is_unsteady),
    }
    return quarantine(SOURCE, TABLE, labels, rules)


def _describe(seconds: pd.DataFrame, accepted: pd.DataFrame, cores: float) -> dict[str, pd.Series]:
    """Return every declared column that is no metric."""
    frame = seconds.loc[accepted["position"]].reset_index(drop=True)
    quantity = accepted["quantity"]
    placement = frame["placement"].astype("str")
    is_pinned = placement == PINNED

    run = "run " + _whole_text(frame["run"])
    tenant = "tenant " + _whole_text(frame["tenant"])
    attempt = _whole_text(frame["attempt"])
    second = "second " + _whole_text(frame["second"])
    members = _join_members(seconds)
    kind = quantity.map({THROUGHPUT: "throughput", LATENCY: "tail latency"})

    available = np.where(placement == SAME_CORE, 1.0, min(2.0, cores))
    shared = pd.Series(available, frame.index).where(~is_pinned, 1.0)
    quotas = frame["quota"].astype(float).where(placement == QUOTA)
    return {
        "result_id": run + "." + attempt + ", " + tenant + ", " + second + ", " + quantity,
        "quantity": quantity,
        "victim": frame["victim"],
        "run": run,
        "tenants": frame["run"].map(members),
        "aggressors": frame["aggressors"].fillna("").astype("str"),
        "scenario": frame["scenario"],
        "placement": placement,
        "task_kind": kind.where(~is_pinned, kind + ", separate cores"),
        "intensity": frame["intensity"],
        "aggressor_intensity": frame["aggressor_intensity"],
        "neighbors": frame["aggressor_count"].astype(float).where(~is_pinned, 0.0),
        "cores": shared.where(~(quotas < shared), quotas),
        "share": accepted["stated"].clip(lower=MIN_SHARE),
        "is_reference": (frame["phase"] == "alone").astype(float),
        "throughput": frame["throughput"],
        "throughput_alone": frame["throughput_alone"],
        "latency_p99": frame["latency_p99"],
        "latency_p99_alone": frame["latency_p99_alone"],
        "reference_spread": frame["reference_spread"],
        "second": frame["second"],
        "late": frame["late"],
        "tenant": tenant,
        "source_file": pd.Series(TABLE, frame.index),
        "source_line": accepted["line"],
    }


def _whole_text(values: pd.Series) -> pd.Series:
    return values.astype("int64").astype("str")


def _join_members(seconds: pd.DataFrame) -> pd.Series:
    """Return the workloads of each run, joined by a plus sign."""
    tenants = seconds.drop_duplicates(["run", "tenant"])
    return tenants.groupby("run")["victim"].agg(lambda names: "+".join(sorted(names)))


def _count(values: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in values.value_counts().sort_index().items()}


def build_known(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the labeled seconds as `host_interference`, and append the victim's metrics alone.

    A host seldom meets a tenant for the first time beside neighbors. What its control group used alone is known without
    a word of the victim, and the same rows ask how much that helps.
    The mean is over the seconds alone before the row's second, in the same run: a later one is not known yet. It is
    missing before the first. Options and errors are those of `host_interference`.
    """
    standardized = build(raw, options)
    seconds = read_seconds(raw[SOURCE] / TABLE).reset_index(drop=True)
    metrics = [name for name in metric_names(seconds) if name.startswith("group.")]
    means = average_alone(seconds, metrics)
    table = standardized.table
    positions = table.frame["source_line"].to_numpy().astype(np.int64) - 1
    columns = []
    for name in metrics:
        meaning = f"mean of {name} over the earlier seconds alone"
        columns.append(Column(ALONE + name, Kind.NUMERICAL, Role.FEATURE, "alone", meaning=meaning))
    table = table.with_numbers(columns, means[positions].T)
    return replace(standardized, table=replace(table, dataset=f"{SOURCE}_known"))


def average_alone(seconds: pd.DataFrame, metrics: list[str]) -> np.ndarray:
    """Return the mean of metrics over the earlier seconds alone of the same tenant and run, NaN without one.

    Shapes: `seconds` with run, attempt, tenant, second and phase, (n,) -> (n, metrics) float64.
    """
    values = seconds[metrics].to_numpy(dtype="float64", na_value=np.nan)
    is_alone = (seconds["phase"] == "alone").to_numpy(dtype=bool)
    values = np.where(np.isfinite(values) & is_alone[:, None], values, np.nan)
    tenant = seconds.groupby(["run", "attempt", "tenant"], sort=False).ngroup()
    order = np.lexsort((seconds["second"], tenant))
    frame = pd.DataFrame(values[order])
    groups = tenant.to_numpy()[order]
    is_measured = frame.notna()
    filled = frame.fillna(0.0)
    # sums up to a second, less the second itself
    totals = filled.groupby(groups).cumsum() - filled
    counts = is_measured.groupby(groups).cumsum() - is_measured
    means = np.empty_like(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        means[order] = np.where(counts > 0, totals / counts, np.nan)
    return means
