"""Interference on one machine: one row per second of a victim and quantity, with the last seconds of every metric.

The target is the share of the throughput that the victim has alone, or of its tail latency alone over that measured; 1
minus the share is the degradation. What the victim reports is a label and never a feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import FACTS, quarantine, read_machine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import Rejection, build_rejected_frame, require_rows
from perfcast.domains.interference.datasets.interference_columns import (
    COLUMNS,
    LATENCY,
    PINNED,
    QUOTA,
    SAME_CORE,
    THROUGHPUT,
    declare_metric,
)
from perfcast.domains.interference.sources.host_interference import MACHINE, REMEDY, TABLE, metric_names, read_seconds
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import build_table
from perfcast.utils.errors import UserError

SOURCE = "host_interference"
WINDOW_SECONDS = 10
MIN_SHARE = 0.01
"""Share of a victim that did nothing in a second: predictors learn logarithms, and a tenth of a point is no error."""
LARGEST_SHARE = 3.0
"""A larger share is no interference: the reference is wrong."""


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the labeled seconds. An input row is one quantity of a second.

    Rows whose labels the measurement rejected are quarantined, but their metrics are part of windows. Seconds alone are
    references: their share is 1 up to noise by definition, so they train and do not count in the metrics.
    Options: `max_tail_spread`, the relative difference of the latencies alone, before and after, above which a label of
    the latency is quarantined.

    Raises:
        UserError: A file is missing or broken, or an option is invalid.
    """
    spread = _read_spread(options)
    seconds = read_seconds(raw[SOURCE] / TABLE).reset_index(drop=True)
    machine = read_machine(SOURCE, raw[SOURCE] / MACHINE, REMEDY)
    labels = pd.concat([_label_throughput(seconds), _label_latency(seconds)], ignore_index=True)
    accepted, rejections = _quarantine(labels, spread)
    require_rows(len(accepted), SOURCE, rejections)
    accepted = accepted.sort_values(["position", "quantity"], kind="stable").reset_index(drop=True)
    positions = accepted["position"].to_numpy()
    places = window_positions(seconds)[positions]
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


def _read_spread(options: Mapping[str, Any]) -> float:
    value = options.get("max_tail_spread", 0.2)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UserError(f"option 'max_tail_spread' of {SOURCE} must be a positive number", f"found {value!r}")
    return float(value)


def _label_throughput(seconds: pd.DataFrame) -> pd.DataFrame:
    return _labels(seconds, THROUGHPUT, 1 - seconds["degradation"], seconds["reference_spread"])


def _label_latency(seconds: pd.DataFrame) -> pd.DataFrame:
    known = seconds[seconds["degradation_p99"].notna()]
    return _labels(known, LATENCY, 1 - known["degradation_p99"], known["reference_spread_p99"])


def _labels(seconds: pd.DataFrame, quantity: str, share: pd.Series, spread: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "position": seconds.index,
            "line": seconds.index + 1,
            "quantity": quantity,
            "stated": share.astype(float),
            "spread": spread.astype(float),
            "rejected": seconds["rejected"].fillna("").astype(str),
        }
    )


def _quarantine(labels: pd.DataFrame, spread: float) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each label under the first rule that it breaks; return the others and the rejections."""
    stated, why = labels["stated"], labels["rejected"]
    unsteady = (labels["quantity"] == LATENCY) & ~(labels["spread"] <= spread)
    described = "share: " + stated.round(4).astype("str")
    rules = {
        "unsteady_reference": why.where(why.str.contains("reference")),
        "late_sample": why.where(why.str.contains("late")),
        "stolen_time": why.where(why.str.contains("steal")),
        "rejected_by_measurement": why.where(why != ""),
        "not_a_number": described.where(~np.isfinite(stated)),
        "out_of_bounds": described.where(~stated.between(0, LARGEST_SHARE)),
        "unsteady_tail_reference": ("spread: " + labels["spread"].round(4).astype("str")).where(unsteady),
    }
    return quarantine(SOURCE, TABLE, labels, rules)


def _describe(seconds: pd.DataFrame, accepted: pd.DataFrame, cores: float) -> dict[str, pd.Series]:
    """Return every declared column that is no metric."""
    frame = seconds.loc[accepted["position"]].reset_index(drop=True)
    quantity, placement = accepted["quantity"], frame["placement"].astype("str")
    members = (
        seconds.drop_duplicates(["run", "tenant"]).groupby("run")["victim"].agg(lambda names: "+".join(sorted(names)))
    )
    pinned = placement == PINNED
    numbers = {name: frame[name].astype("int64").astype("str") for name in ("run", "attempt", "tenant", "second")}
    shared = pd.Series(np.where(placement == SAME_CORE, 1.0, min(2.0, cores)), frame.index).where(~pinned, 1.0)
    quotas = frame["quota"].astype(float).where(placement == QUOTA)
    named = quantity.map({THROUGHPUT: "throughput", LATENCY: "tail latency"})
    return {
        "result_id": "run "
        + numbers["run"]
        + "."
        + numbers["attempt"]
        + ", tenant "
        + numbers["tenant"]
        + ", second "
        + numbers["second"]
        + ", "
        + quantity,
        "quantity": quantity,
        "victim": frame["victim"],
        "run": "run " + numbers["run"],
        "tenants": frame["run"].map(members),
        "aggressors": frame["aggressors"].fillna("").astype("str"),
        "scenario": frame["scenario"],
        "placement": placement,
        "task_kind": named.where(~pinned, named + ", separate cores"),
        "intensity": frame["intensity"],
        "aggressor_intensity": frame["aggressor_intensity"],
        "neighbors": frame["aggressor_count"].astype(float).where(~pinned, 0.0),
        "cores": shared.where(~(quotas < shared), quotas),
        "share": accepted["stated"].clip(lower=MIN_SHARE),
        "is_reference": (frame["phase"] == "alone").astype(float),
        **{name: frame[name] for name in ("throughput", "throughput_alone", "latency_p99", "latency_p99_alone")},
        **{name: frame[name] for name in ("reference_spread", "second", "late")},
        "tenant": "tenant " + numbers["tenant"],
        "source_file": pd.Series(TABLE, frame.index),
        "source_line": accepted["line"],
    }


def _count(values: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in values.value_counts().sort_index().items()}
