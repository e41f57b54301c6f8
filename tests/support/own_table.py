"""A table of a user's own: machines, two suites, a date; the headings are those of a spreadsheet."""

from __future__ import annotations

import numpy as np
import pandas as pd


def own_table(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Generate scores that grow with cores and clock, three rows a machine, with 3 % noise."""
    rng, machine = np.random.default_rng(seed), np.arange(rows) // 3
    cores, clock = rng.choice([8, 16, 32, 64], rows)[machine], rng.choice([2.0, 2.5, 3.1], rows)[machine]
    suite = np.where(np.arange(rows) % 2 == 0, "web", "db")
    score = np.where(suite == "web", 3, 1) * cores**0.9 * clock * np.exp(rng.normal(0, 0.03, rows))
    tested = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1400, rows), unit="D")
    return pd.DataFrame(
        {
            "Machine": [f"box {number}" for number in machine],
            "Suite": suite,
            "Cores": cores,
            "Clock (GHz)": clock,
            "Memory GB": 64 * rng.integers(1, 9, rows),
            "Vendor": rng.choice(["AMD", "Intel"], rows)[machine],
            "Tested": pd.Series(tested).dt.strftime("%Y-%m-%d"),
            "Score": score.round(2),
        }
    )
