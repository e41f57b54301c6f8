"""Generated results of SPEC CPU2026: made-up machines of the generated SPEC CPU2017 dump under the new names."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.spec_cpu2017 import DUMP
from perfcast.utils.io import atomic_path

FILE = "cpu2026-results.csv"
_LEFT_OUT = {"Energy Peak Result", "Energy Base Result", "Parallel", "Storage", "Disclosure"}
_DATES = {
    "HW Avail": "Jan-2026",
    "SW Avail": "Feb-2026",
    "Test Date": "Apr-2026",
    "Published": "May-2026",
}
_LATER = {**_DATES, "Test Date": "May-2026", "Published": "Jun-2026"}
_LATER_SHARE = 5


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write cpu2026-results.csv: results of May 2026, every fifth of June, numbered from 1."""
    names = {name.strip(): name for name in DUMP.header if name.strip() not in _LEFT_OUT}
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for number, row in enumerate(DUMP.draw_results(rows, np.random.default_rng([seed, 2026])), start=1):
        page = f"/cpu2026/results/res2026q2/cpu2026-20260410-{number:05d}.html"
        known = {name: row[name] for name in names if name in row}
        suite = row["Benchmark"].replace("2017", "2026")
        dates = _DATES if number % _LATER_SHARE else _LATER
        writer.writerow(
            {
                **known,
                "Benchmark": suite,
                **dates,
                "Updated": "May-2026",
                "Disclosures": page,
            }
        )
    with atomic_path(Path(folder) / FILE) as path:
        path.write_text(text.getvalue(), encoding="utf-8")
