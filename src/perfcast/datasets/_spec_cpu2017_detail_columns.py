"""The standard columns of spec_cpu2017_detail, and the list of what must never become one of its features."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfcast.data.sources.spec_cpu2017_detail import BENCHMARKS
from perfcast.datasets._spec_cpu2017_columns import COLUMNS as PUBLISHED_COLUMNS
from perfcast.schema import Column, Kind, Role, Tag

SUITES = {
    "input_Int_rate.csv": "CINT2017rate",
    "input_FP_rate.csv": "CFP2017rate",
    "input_Int_speed.csv": "CINT2017speed",
    "input_FP_speed.csv": "CFP2017speed",
}
"""File -> suite, as spec_cpu2017 names it."""

TARGETS = tuple(benchmark for file in SUITES for benchmark in BENCHMARKS[file])

_SECONDS = "seconds of the base run: reference seconds x copies / score, the score once more"
_AGGREGATE = "a mean, a peak result, an energy or a time: it is computed from the scores or measured with them"
ENCODE_THE_RESULT = (
    (r"^t_", _SECONDS),
    (r"^\d{3}\.", "score of a benchmark; a target or, as a peak score, measured beside one"),
    (r"score|result|mean|peak|energy|watt|second|runtime|specrate|specspeed", _AGGREGATE),
)
"""Pattern of a column's name -> why it must not be a feature. Names are compared in lower case."""

LEFT_OUT = {
    "os_name": "parsed from the text of the operating system instead, as in spec_cpu2017",
    "os_vid": "parsed from the text of the operating system instead, as in spec_cpu2017",
    "arch": "parsed from the text of the operating system, or that of the processor, as in spec_cpu2017",
    **{f"t_{benchmark}": _SECONDS for benchmark in TARGETS},
}
"""Columns of the files that the table leaves out, and why; every other column it does not use is told as unknown."""

NOT_COMPARED = frozenset(
    {"base_score", "peak_score", "energy_base", "peak_ptr", "updated", "xalanc_notice"}
    | {"q_peak_lt_base", "q_near_dup", "q_score_residual", "q_far_below_peers"}
)
"""Columns of spec_cpu2017 that describe its own score, or that come after publication; they have no place here."""

_SCORE = "base score of the benchmark: reference seconds x copies / seconds"
_COPIES = "copies of a rate run, threads of a speed run, as chosen by the tester"
_WITHDRAWN = "1 where the published list has since shown no score for the result"


def _feature(name: str, group: str, unit: str, meaning: str, bounds: tuple[float, float]) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, *bounds, (Tag.CONFIG,))


_OWN = (
    _feature("copies_or_threads", "workload", "", _COPIES, (1, 65536)),
    _feature("max_mhz", "processor", "MHz", "highest clock as stated with the result", (800, 6500)),
    _feature("numa_nodes", "system", "", "memory nodes the system shows", (1, 1024)),
    _feature("logical_cpus", "system", "", "processors the system shows", (1, 65536)),
    # To the kilobyte it tells one machine from its twin, like a serial number: no feature.
    Column("mem_os_gb", Kind.NUMERICAL, Role.PROVENANCE, "memory", "GiB", "memory the system shows", 0.25, 131072),
    Column("q_withdrawn", Kind.NUMERICAL, Role.PROVENANCE, "audit", "", _WITHDRAWN, 0, 1),
)
_TARGETS = tuple(
    Column(name, Kind.NUMERICAL, Role.TARGET, "workload", "ratio to reference", _SCORE, 0.01, 1e6) for name in TARGETS
)


def why_forbidden(name: str) -> str:
    """Return why a column of this name must not be a feature, "" where nothing is known against it."""
    return next((why for pattern, why in ENCODE_THE_RESULT if re.search(pattern, name.casefold())), "")


def refuse_leaks(columns: Iterable[Column]) -> None:
    """Make sure that no feature is named like a result. Raises: ValueError with the first one and the reason."""
    for column in columns:
        if column.role is Role.FEATURE and (why := why_forbidden(column.name)):
            raise ValueError(f"column {column.name!r} must not be a feature: {why}")


COLUMNS: tuple[Column, ...] = (
    *(column for column in PUBLISHED_COLUMNS if column.name not in NOT_COMPARED),
    *_OWN,
    *_TARGETS,
)
"""All standard columns in table order: those of spec_cpu2017 by their own names, then what is particular."""
