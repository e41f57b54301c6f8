"""Quality of a campaign: noise of repeated references, steal, rejected labels and why, cost of the sampler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.interference.measuring.scenarios import ALONE, TOGETHER


def summarize_quality(
    frame: pd.DataFrame, campaign: Mapping[str, Any], sampler_shares: Sequence[float]
) -> dict[str, Any]:
    """Return the report as JSON values.

    Args:
        frame: Labeled rows of the chosen attempts, rejected ones included.
        campaign: Facts of the campaign.
        sampler_shares: Share of one core that the sampler took, by run.
    """
    accepted = frame[frame["rejected"] == ""]
    return {
        **campaign,
        "rows": len(frame),
        "accepted_rows": len(accepted),
        "accepted_rows_together": int((accepted["phase"] == TOGETHER).sum()),
        "runs": int(frame["run"].nunique()),
        "repeated_runs": int(frame.loc[frame["attempt"] > 1, "run"].nunique()),
        "rejected": count_reasons(frame["rejected"]),
        "sampler_share_of_a_core": _round(np.mean(sampler_shares)) if sampler_shares else None,
        "steal_mean": _mean(frame, "stat.cpu.steal"),
        "accepted_rows_by_placement": count_by(accepted, "placement"),
        "accepted_rows_by_scenario": count_by(accepted, "scenario"),
        "degradation": _describe_degradation(accepted),
        "victims": {str(name): _describe_victim(rows) for name, rows in frame.groupby("victim")},
    }


def count_reasons(rejected: pd.Series) -> dict[str, int]:
    """Return the rows that each reason rejects; one row can have several."""
    reasons = Counter(reason for text in rejected for reason in str(text).split("+") if reason)
    return dict(sorted(reasons.items()))


def count_by(frame: pd.DataFrame, column: str) -> dict[str, int]:
    """Return rows by value of a column."""
    return {str(name): int(count) for name, count in frame[column].value_counts().sort_index().items()}


def reference_noise(rows: pd.DataFrame) -> float | None:
    """Return how references of one victim differ between runs: standard deviation over mean, median over kinds.

    References of one kind have the same intensity, and processors, quota and memory of the same kind.
    """
    kinds = rows.assign(kind=rows["placement"].replace({"other_core": "same_core"}))
    keys = ["intensity", "kind", "quota", "memory_slack_mib"]
    means = kinds.groupby([*keys, "run", "attempt"], dropna=False)["throughput_alone"].mean()
    groups = means.groupby(level=keys, dropna=False)
    spreads = (groups.std() / groups.mean()).dropna()
    return _round(spreads.median()) if len(spreads) else None


def _describe_victim(rows: pd.DataFrame) -> dict[str, Any]:
    windows = rows.drop_duplicates(["run", "tenant"])
    accepted = rows[rows["rejected"] == ""]
    alone, together = (accepted[accepted["phase"] == phase] for phase in (ALONE, TOGETHER))
    return {
        "windows": len(windows),
        "windows_with_steady_references": int((~windows["rejected"].str.contains("reference")).sum()),
        "reference_spread_median": _quantile(windows["reference_spread"], 0.5),
        "reference_noise_between_runs": reference_noise(rows),
        "noise_of_seconds_alone": _round(alone["degradation"].std()) if len(alone) > 1 else None,
        "accepted_rows": len(accepted),
        "accepted_rows_together": len(together),
        "degradation_median": _quantile(together["degradation"], 0.5),
        "operations_per_second_alone": _quantile(accepted.loc[accepted["intensity"] == 1, "throughput_alone"], 0.5),
    }


def _describe_degradation(accepted: pd.DataFrame) -> dict[str, Any]:
    """Return quantiles of the degradation together, by placement."""
    together = accepted[accepted["phase"] == TOGETHER]
    return {
        str(name): {f"q{round(100 * level)}": _quantile(rows["degradation"], level) for level in (0.1, 0.5, 0.9)}
        for name, rows in together.groupby("placement")
    }


def _mean(frame: pd.DataFrame, column: str) -> float | None:
    return _round(frame[column].mean()) if column in frame and frame[column].notna().any() else None


def _quantile(values: pd.Series, level: float) -> float | None:
    values = values.dropna()
    return _round(values.quantile(level)) if len(values) else None


def _round(value: Any) -> float | None:
    return float(f"{float(value):.4g}") if np.isfinite(value) else None
