"""Processor catalogs: four CSV files of specifications, each with the columns of its publisher."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv

COLUMNS = {
    "intel-cpus.csv": ("CpuId", "CpuName", "CodeNameText", "CoreCount", "ClockSpeed", "ClockSpeedMax", "MaxTDP"),
    "amd-cpus.csv": ("Model", "Family", "# of CPU Cores", "Base Clock", "Default TDP"),
    "intel_xeon_processors_v1_8.csv": ("Product", "Code Name", "Cores", "Base Freq.(GHz)", "TDP(W)"),
    "boavizta_cpu_specs.csv": ("name", "code_name", "release_date", "frequency", "tdp", "cores"),
}
"""File -> required columns. The Intel file has 247 columns; two columns of the AMD file have no name."""


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    for name, columns in COLUMNS.items():
        check_csv(folder / name, columns)
