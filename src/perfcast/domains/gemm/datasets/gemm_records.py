"""Parser of the records that the authors' script wrote: seven lines each, a result and a description of its kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from perfcast.domains import read_columns

QUANTITIES = {"runtime": "ms", "power": "W", "energy": "mJ"}
"""Measured quantity -> its unit."""
ALONE = "alone"
SHARED = "shared"

_DEVICES = {
    # NVIDIA, Ada GPU architecture whitepaper and product page: 46 SMs of 128 FP32 lanes, 36 MB L2, 192 bits at 21 Gb/s
    "NVIDIA GeForce RTX 4070": {
        "sms": 46.0,
        "lanes": 128.0,
        "boost_mhz": 2475.0,
        "l2_mib": 36.0,
        "gb_per_s": 504.2,
    },
}
_FACTS = ("sms", "lanes", "boost_mhz", "l2_mib", "gb_per_s")


def look_up_device_facts(device: pd.Series) -> dict[str, pd.Series]:
    """Return published facts of each device by column; they are missing for an unlisted device."""
    columns = {}
    for name in _FACTS:
        by_device = {key: facts[name] for key, facts in _DEVICES.items()}
        columns[name] = device.map(by_device).astype(float)
    return columns


COLUMNS = read_columns(__package__, "columns.csv", "gpperf")

LINES = 7
FIRST_LINE = (
    # configuration
    "unix_time",
    "m",
    "n",
    "k",
    "kernel",
    "requested_layout",
    "requested_tile_m",
    "requested_tile_n",
    "requested_tile_k",
    "requested_stages",
    "epilogue",
    "alpha",
    "beta",
    # result
    "runtime_ms",
    "counters",
    # report of nvidia-smi after the run
    "power_w",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "utilization_after",
    "memory_utilization_after",
    # its report before the run
    "device",
    "compute_capability",
    "max_memory_clock_mhz",
    "max_clock_mhz",
    "power_limit_w",
    "temperature_before_c",
    "compute_mode",
    "memory_mib",
    "memory_free_mib",
    "memory_used_mib",
    "utilization_before",
    "memory_utilization_before",
    "kernel_label",
    "described_kernel",
)
"""Fields of the first line."""
DESCRIPTION = (
    "arithmetic_intensity",
    "uses_shared_memory",
    "computation_pattern",
    "problem_size_m",
    "problem_size_n",
    "problem_size_k",
)
"""First field of each further line; the last line ends with RESULTS."""
RESULTS = ("energy_j", "gflops_per_watt", "tflops")

_BEGIN = re.compile(r"\d{1,12},\d+,\d+,\d+,")


@dataclass(frozen=True)
class Record:
    """Fields of one record, or the reason why it is broken.

    `line` is the first line of the record in the file.
    """

    line: int
    fields: dict[str, str]
    reason: str = ""
    detail: str = ""


def parse_records(text: str) -> Iterator[Record]:
    """Yield the records of the text after the header, whole or broken, in order.

    A record begins at a line that starts with a time and three sides. Lines before the first record form a broken
    record. A line break is LF or CRLF; empty lines are skipped.
    """
    begin = 1
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.rstrip("\r")
        if _BEGIN.match(stripped) and lines:
            yield _parse_record(begin, lines)
            lines = []
        if stripped:
            begin = begin if lines else number
            lines.append(stripped)
    if lines:
        yield _parse_record(begin, lines)


def _parse_record(line: int, lines: list[str]) -> Record:
    if not _BEGIN.match(lines[0]):
        return Record(line, {}, "stray_lines", lines[0][:100])
    if len(lines) != LINES:
        return Record(line, {}, "wrong_line_count", f"{len(lines)} lines, a record has {LINES}")
    first = lines[0].split(",")
    if len(first) != len(FIRST_LINE):
        return Record(
            line,
            {},
            "wrong_field_count",
            f"{len(first)} fields, the first line has {len(FIRST_LINE)}",
        )
    fields = dict(zip(FIRST_LINE, (field.strip() for field in first), strict=True))
    for name, further in zip(DESCRIPTION, lines[1:], strict=True):
        label, *values = (field.strip() for field in further.split(","))
        value_count = 1 + len(RESULTS) * (name == DESCRIPTION[-1])
        if label != name or len(values) != value_count:
            return Record(line, {}, "wrong_description", further[:100])
        fields |= dict(zip((name, *RESULTS), values, strict=False))
    return Record(line, fields)
