"""Published SPEC CPU 2006 results: one xz CSV, one row per result, without an identifier."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv

FILE = "cpu2006-results.csv.xz"

COLUMNS = (
    "Benchmark",
    "Hardware Vendor",
    "System",
    "Result",
    "Baseline",
    "Cores",
    "Chips",
    "Cores Per Chip",
    "Threads Per Core",
    "Processor",
    "Processor MHz",
    "Processor Characteristics",
    "CPU(s) Orderable",
    "Auto Parallelization",
    "Base Pointer Size",
    "Peak Pointer Size",
    "1st Level Cache",
    "2nd Level Cache",
    "3rd Level Cache",
    "Other Cache",
    "Memory",
    "Operating System",
    "File System",
    "Compiler",
    "HW Avail",
    "SW Avail",
    "License",
    "Tested By",
    "Test Sponsor",
    "Test Date",
    "Published",
    "Updated",
)
"""Required columns; `Result` is the peak result and `Baseline` the base result."""


def check(folder: Path) -> None:
    """Check the structure of the ingested file. Raises: UserError."""
    check_csv(folder / FILE, COLUMNS, encoding_by_row=True)
