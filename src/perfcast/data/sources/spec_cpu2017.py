"""Published SPEC CPU 2017 results: one gzip CSV, one row per result."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv
from perfcast.utils import size_limits

FILE = "cpu2017-results.csv.gz"
COLUMNS = (
    "Benchmark",
    "Hardware Vendor",
    "System",
    "Peak Result",
    "Base Result",
    "Energy Peak Result",
    "Energy Base Result",
    "# Cores",
    "# Chips",
    "# Enabled Threads Per Core",
    "Processor",
    "Processor MHz",
    "CPU(s) Orderable",
    "Parallel",
    "Base Pointer Size",
    "Peak Pointer Size",
    "1st Level Cache",
    "2nd Level Cache",
    "3rd Level Cache",
    "Other Cache",
    "Memory",
    "Storage",
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
    "Disclosure",
    "Disclosures",
)
"""Required columns, stripped: in the file, blanks and tabs surround the names."""


def check(folder: Path) -> None:
    """Check the structure of the ingested file. Raises: UserError."""
    check_csv(folder / FILE, COLUMNS, encoding_by_row=True, max_bytes=size_limits.DUMP)
