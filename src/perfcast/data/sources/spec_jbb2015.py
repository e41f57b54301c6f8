"""Published SPECjbb2015 results: one CSV, one row per result."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv

FILE = "jbb2015-results.csv"

COLUMNS = (
    "Benchmark",
    "Company",
    "System",
    "Max-jOPS",
    "Critical-jOPS",
    "JVM",
    "JVM Vendor",
    "# of nodes",
    "# cores",
    "# chips",
    "# cores per chip",
    "# of threads per core",
    "Total # of threads",
    "Processor",
    "CPU Speed",
    "Primary Cache",
    "Secondary Cache",
    "Tertiary Cache",
    "Memory (GB)",
    "DIMMS",
    "Memory Details",
    "Disk",
    "File System",
    "Operating System",
    "Form factor",
    "Hardware Availability",
    "SW Availability",
    "Tested By",
    "Test Sponsor",
    "Published",
    "Updated",
    "Disclosure",
)
"""Columns that the dataset reads, stripped: in the file, blanks and tabs surround the names."""


def check(folder: Path) -> None:
    """Check the structure of the ingested file. Raises: UserError."""
    check_csv(folder / FILE, COLUMNS, encoding_by_row=True)
