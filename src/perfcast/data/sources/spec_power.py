"""Published SPECpower_ssj2008 results: one CSV, one row per result, operations and watts at eleven load levels."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv

FILE = "power_ssj2008-results.csv"

COLUMNS = (
    "Hardware Vendor",
    "System",
    "Nodes",
    "Form Factor",
    "Result",
    "ssj_ops @ 100% of target load",
    "Average watts @ 100% of target load",
    "Average watts @ active idle",
    "# Cores",
    "# Chips",
    "# Cores Per Chip",
    "# Threads Per Core",
    "Processor",
    "Processor MHz",
    "1st Level Cache",
    "2nd Level Cache",
    "3rd Level Cache",
    "Memory (GB)",
    "Operating System",
    "Operating System Version",
    "File System",
    "DIMMS",
    "Memory Description",
    "JVM Vendor",
    "JVM Version",
    "Disk Drive",
    "Power Supplies Installed",
    "Power Supply Rating (watts)",
    "HW Avail",
    "SW Avail",
    "Tested By",
    "Test Sponsor",
    "Test Date",
    "Published",
    "Updated",
    "Disclosure",
)
"""Columns that the dataset reads, stripped: in the file, blanks and tabs surround the names."""


def check(folder: Path) -> None:
    """Check the structure of the ingested file. Raises: UserError."""
    check_csv(folder / FILE, COLUMNS, encoding_by_row=True)
