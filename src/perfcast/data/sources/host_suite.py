"""Kernels measured by this project: one gzip CSV and a description of the machine."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv, check_machine_description

MEASUREMENTS = "host_suite.csv.gz"
MACHINE = "host_suite.json"

COLUMNS = ("kernel", "variant", "bytes", "threads", "work", "combined", "seconds_median", "rate", "unit", "interrupted")


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    check_csv(folder / MEASUREMENTS, COLUMNS)
    check_machine_description(folder / MACHINE, "run `perfcast measure suite --out data/embedded`")
