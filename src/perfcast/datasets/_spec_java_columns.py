"""Standard columns that spec_power and spec_jbb2015 share: those of spec_cpu2017, and the JVM's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from perfcast.datasets._spec_cpu2017_columns import COLUMNS as CPU2017
from perfcast.schema import Column, Kind, Role, Tag

_BY_NAME = {column.name: column for column in CPU2017}

_TYPES = "R registered, L load-reduced, F fully buffered, E or U unbuffered, S small, M multiplexed"
_RELEASE = "Java release of the JVM: 7 for 1.7.0, 17 for 17.0.2"


def _feature(name: str, kind: Kind, group: str, meaning: str, bounds: tuple[float, float] | None = None) -> Column:
    low, high = bounds or (None, None)
    return Column(name, kind, Role.FEATURE, group, "", meaning, low, high, (Tag.CONFIG,))


def select_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Return the declarations of these columns of spec_cpu2017."""
    return tuple(_BY_NAME[name] for name in names)


KEYS = select_columns(("result_id", "submission_id", "part_id", "part_key"))
SUITE = replace(_BY_NAME["suite"], meaning="benchmark and its setup")
JVM = (
    _feature("jvm_vendor", Kind.CATEGORICAL, "workload", "vendor of the Java virtual machine"),
    _feature("jvm_name", Kind.CATEGORICAL, "workload", "name of the Java virtual machine"),
    _feature("jvm_release", Kind.NUMERICAL, "workload", _RELEASE, (1, 99)),
    _feature(
        "jvm_update", Kind.NUMERICAL, "workload", "update of the Java release; for J9, the service release", (0, 999)
    ),
)
PROCESSOR = tuple(
    column
    for column in CPU2017
    if column.group == "processor" and column.role is not Role.KEY and column.name != "l4_mb"
)
MEMORY = tuple(
    replace(column, meaning=_TYPES) if column.name == "dimm_type" else column
    for column in CPU2017
    if column.group == "memory"
)
SYSTEM = (
    *select_columns(("hw_vendor", "chips", "cores_enabled_total", "threads_per_core")),
    *select_columns(("os_name", "os_version", "kernel_series", "arch", "file_system", "storage_class")),
    _feature("form_factor", Kind.CATEGORICAL, "system", "height of the enclosure such as 2U, else blade or tower"),
    _feature("nodes", Kind.NUMERICAL, "system", "machines in the measured system", (1, 1024)),
)
AUDIT = select_columns(
    (
        *("published_month", "test_month", "hw_avail", "sw_avail", "arrival_day", "updated"),
        *("system_stem", "tester", "sponsor"),
        *("cores_per_chip_stated", "q_cores_mismatch", "q_mem_arith", "q_ddr_gen", "q_date"),
        *("source", "file", "line"),
    )
)


def target(name: str, unit: str, meaning: str, bounds: tuple[float, float]) -> Column:
    """Declare a target."""
    return Column(name, Kind.NUMERICAL, Role.TARGET, "workload", unit, meaning, *bounds)
