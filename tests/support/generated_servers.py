"""Generated servers with known scores: compute time over the announced gain, plus memory time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.schema.table import Column, Kind, Role, Tag

NUMBERS = (
    "base_mhz", "max_turbo_mhz", "tdp_w", "cores_per_chip_of_cpu_model", "cores_enabled_total", "chips",
    "mem_gbps_total", "l3_mb_per_chip", "l3_mb_total", "compiler_version",
)  # fmt: skip
COLUMNS = (
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("cpu_vendor", Kind.CATEGORICAL, Role.FEATURE, "processor"),
    Column("compiler_vendor", Kind.CATEGORICAL, Role.FEATURE, "workload"),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "processor") for name in NUMBERS),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)
GAIN = {"Naples": 1.0, "Rome": 1.15, "Milan": 1.15 * 1.19, "Genoa": 1.15 * 1.19 * 1.14}


def generate_servers(
    rows: int = 600, families: tuple[str, ...] = ("Naples", "Rome", "Milan"), seed: int = 0
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cores = rng.choice([16, 24, 32, 48, 64], rows)
    chips = rng.choice([1, 2], rows)
    return pd.DataFrame(
        {
            "suite": rng.choice(["rate", "speed"], rows),
            "family": rng.choice(families, rows),
            "cpu_vendor": "AMD",
            "compiler_vendor": "AOCC",
            "base_mhz": rng.choice([2000.0, 2400.0, 2800.0], rows),
            "max_turbo_mhz": 3400.0,
            "tdp_w": cores * 4.0,
            "cores_per_chip_of_cpu_model": cores.astype(float),
            "cores_enabled_total": (cores * chips).astype(float),
            "chips": chips.astype(float),
            "mem_gbps_total": rng.choice([100.0, 200.0, 400.0], rows),
            "l3_mb_per_chip": 256.0,
            "l3_mb_total": 256.0 * chips,
            "compiler_version": rng.choice([2.0, 3.0], rows),
        }
    )


def compute_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores from compute time over announced gain plus memory time; the later compiler is 10 % faster."""
    ipc = frame["family"].map(GAIN)
    compute = 5.0 / (ipc * 1500 * 4 ** (1 / 3) / 1000)
    n = frame["cores_enabled_total"]
    rate = n / (compute + 1.0 * n / frame["mem_gbps_total"])
    speed = 1 / (compute / n + 3.0 / frame["mem_gbps_total"])
    score = np.where(frame["suite"] == "rate", rate, speed) * np.where(frame["compiler_version"] >= 3, 1.1, 1.0)
    return pd.DataFrame({"score": score})


def daily_dates(rows: int, last: str) -> pd.Series:
    return pd.Series(pd.date_range(end=last, periods=rows, freq="D"))
