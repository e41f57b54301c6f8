"""Parser of the records that the authors' script wrote: seven lines each, a result and a description of its kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from perfcast.schema.declare import category
from perfcast.schema.table import Column, Kind, Role, Tag

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


def _feature(
    name: str,
    group: str,
    meaning: str,
    unit: str = "",
    *,
    low: float = 0,
    tags: tuple[Tag, ...] = (),
) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, None, tags)


def _reading(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, Kind.NUMERICAL, Role.PROVENANCE, "device", unit, meaning, 0)


_SAME = (Tag.IDENTITY, Tag.CONFIG)
_UNITS = ", ".join(f"{name} in {unit}" for name, unit in QUANTITIES.items())
COLUMNS = (
    category("result_id", Role.KEY, "problem", "configuration and quantity as text", Tag.ROW),
    category(
        "shape",
        Role.KEY,
        "problem",
        "MxNxK: A is M x K, B is K x N, C is M x N",
        Tag.ENTITY,
        Tag.BLOCK,
    ),
    category("quantity", Role.FEATURE, "problem", "measured quantity", Tag.TASK, Tag.CONFIG),
    _feature("m", "problem", "rows of the product", low=1, tags=_SAME),
    _feature("n", "problem", "columns of the product", low=1, tags=_SAME),
    _feature("k", "problem", "length of the inner products", low=1, tags=_SAME),
    category("dtype", Role.FEATURE, "problem", "element type, from the kernel's name", *_SAME),
    _feature(
        "transpose_a",
        "layout",
        "1 where A is stored by rows (t in the kernel's name)",
        tags=_SAME,
    ),
    _feature(
        "transpose_b",
        "layout",
        "1 where B is stored by rows (t in the kernel's name)",
        tags=_SAME,
    ),
    _feature(
        "tile_m",
        "kernel",
        "rows of C that one block of threads computes",
        low=1,
        tags=_SAME,
    ),
    _feature(
        "tile_n",
        "kernel",
        "columns of C that one block of threads computes",
        low=1,
        tags=_SAME,
    ),
    _feature(
        "tile_k",
        "kernel",
        "elements of the inner products loaded at once",
        low=1,
        tags=_SAME,
    ),
    _feature("stages", "kernel", "pipelined loads", low=1, tags=_SAME),
    _feature("alpha", "kernel", "factor of the product: C = alpha A B + beta C", tags=_SAME),
    _feature("beta", "kernel", "factor of the old C; C is not read where beta is 0", tags=_SAME),
    category("device", Role.FEATURE, "device", "device name as nvidia-smi reports it", *_SAME),
    _feature("compute_capability", "device", "CUDA compute capability"),
    _feature("max_clock_mhz", "device", "highest clock of the multiprocessors", "MHz"),
    _feature("max_memory_clock_mhz", "device", "highest clock of the memory", "MHz"),
    _feature("power_limit_w", "device", "power limit", "W"),
    _feature("memory_mib", "device", "device memory", "MiB"),
    _feature("sms", "device", "multiprocessors, as published", low=1),
    _feature("lanes", "device", "single-precision lanes of a multiprocessor, as published", low=1),
    _feature("boost_mhz", "device", "boost clock, as published", "MHz"),
    _feature("l2_mib", "device", "second-level cache, as published", "MiB"),
    _feature("gb_per_s", "device", "memory bandwidth, as published", "GB/s"),
    Column("value", Kind.NUMERICAL, Role.TARGET, "problem", "", f"{_UNITS}; lower is better", 0),
    category(
        "requested_layout",
        Role.PROVENANCE,
        "kernel",
        "requested layout; the profiler ignores it",
    ),
    _reading("requested_tile_m", "requested rows of a tile; the profiler ignores them"),
    _reading("requested_tile_n", "requested columns of a tile; the profiler ignores them"),
    _reading("requested_tile_k", "requested depth of a tile; the profiler ignores it"),
    _reading("memory_used_mib", "device memory in use before the run", "MiB"),
    _reading("utilization_before", "busy share of time before the run", "%"),
    _reading("utilization_after", "busy share of time after the run", "%"),
    _reading("sm_clock_mhz", "clock of the multiprocessors after the run", "MHz"),
    _reading("temperature_c", "temperature after the run", "°C"),
    category(
        "device_state",
        Role.PROVENANCE,
        "device",
        "alone or shared with other processes",
        Tag.SLICE,
    ),
    Column("measured_at", Kind.DATE, Role.PROVENANCE, "problem", meaning="end of the run"),
    category("source_file", Role.PROVENANCE, "problem", "file of the row"),
    Column(
        "source_line",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "problem",
        meaning="line of that file",
        low=1,
    ),
)

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
