"""Kernels measured by the project itself: one gzip CSV and a description of the machine."""

from __future__ import annotations

from pathlib import Path

from perfcast.sources._headers import check_csv
from perfcast.sources._machine import check_machine

MEASUREMENTS = "host_suite.csv.gz"
MACHINE = "host_suite.json"

COLUMNS = ("kernel", "variant", "bytes", "threads", "work", "combined", "seconds_median", "rate", "unit", "interrupted")


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    check_csv(folder / MEASUREMENTS, COLUMNS)
    check_machine(folder / MACHINE, "measure anew with `perfcast measure suite --out data/embedded`")
