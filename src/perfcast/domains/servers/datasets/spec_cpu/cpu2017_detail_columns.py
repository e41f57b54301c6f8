"""Standard columns of spec_cpu2017_detail, and the names that must never become features."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perfcast.domains.servers.datasets.spec_cpu.cpu2017_columns import COLUMNS as PUBLISHED_COLUMNS
from perfcast.schema.table import Column, Kind, Role, Tag

SUITES = {
    "input_Int_rate.csv": "CINT2017rate",
    "input_FP_rate.csv": "CFP2017rate",
    "input_Int_speed.csv": "CINT2017speed",
    "input_FP_speed.csv": "CFP2017speed",
}
"""File -> suite, as spec_cpu2017 names it."""

_SCORES = {
    "input_FP_rate.csv": "503.bwaves_r 507.cactuBSSN_r 508.namd_r 510.parest_r 511.povray_r 519.lbm_r 521.wrf_r "
    "526.blender_r 527.cam4_r 538.imagick_r 544.nab_r 549.fotonik3d_r 554.roms_r",
    "input_FP_speed.csv": "603.bwaves_s 607.cactuBSSN_s 619.lbm_s 621.wrf_s 627.cam4_s 628.pop2_s 638.imagick_s "
    "644.nab_s 649.fotonik3d_s 654.roms_s",
    "input_Int_rate.csv": "500.perlbench_r 502.gcc_r 505.mcf_r 520.omnetpp_r 523.xalancbmk_r 525.x264_r "
    "531.deepsjeng_r 541.leela_r 548.exchange2_r 557.xz_r",
    "input_Int_speed.csv": "600.perlbench_s 602.gcc_s 605.mcf_s 620.omnetpp_s 623.xalancbmk_s 625.x264_s "
    "631.deepsjeng_s 641.leela_s 648.exchange2_s 657.xz_s",
}
BENCHMARKS = {file: tuple(names.split()) for file, names in _SCORES.items()}
"""File -> score columns. The `t_` columns of the file, not listed here, are the same scores in seconds."""

TARGETS = tuple(benchmark for file in SUITES for benchmark in BENCHMARKS[file])

_SECONDS = "seconds of the base run: reference seconds x copies / score, equivalent to the score"
_AGGREGATE = "a mean, peak result, energy or time: computed from the scores or measured with them"
ENCODE_THE_RESULT = (
    (r"^t_", _SECONDS),
    (r"^\d{3}\.", "score of a benchmark: a target, or a peak score measured with it"),
    (r"score|result|mean|peak|energy|watt|second|runtime|specrate|specspeed", _AGGREGATE),
)
"""Pattern of a name in lower case -> the reason why such a column must not be a feature."""

OMITTED = {
    "os_name": "parsed from the operating system text, as in spec_cpu2017",
    "os_vid": "parsed from the operating system text, as in spec_cpu2017",
    "arch": "parsed from the operating system or processor text, as in spec_cpu2017",
    **{f"t_{benchmark}": _SECONDS for benchmark in TARGETS},
}
"""Column of the files that the table omits -> the reason. Other unused columns are reported as unknown."""

OMITTED_PUBLISHED = frozenset(
    {"base_score", "peak_score", "energy_base", "peak_ptr", "updated", "xalanc_notice"}
    | {"q_peak_lt_base", "q_near_dup", "q_score_residual", "q_far_below_peers"}
)
"""Omitted columns of spec_cpu2017: they describe its score, or are unknown at publication."""

_SCORE = "base score of the benchmark: reference seconds x copies / seconds"
_COPIES = "copies of a rate run or threads of a speed run"
_WITHDRAWN = "1 where SPEC has withdrawn the score since"


def _feature(name: str, group: str, unit: str, meaning: str, bounds: tuple[float, float]) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, *bounds, (Tag.CONFIG,))


_ADDED = (
    _feature("copies_or_threads", "workload", "", _COPIES, (1, 65536)),
    _feature("max_mhz", "processor", "MHz", "highest clock as stated", (800, 6500)),
    _feature("numa_nodes", "system", "", "NUMA nodes visible to the system", (1, 1024)),
    _feature("logical_cpus", "system", "", "logical processors visible to the system", (1, 65536)),
    # Its last digits identify a single machine, like a serial number, so it is no feature.
    Column("mem_os_gb", Kind.NUMERICAL, Role.PROVENANCE, "memory", "GiB", "memory visible to the system", 0.25, 131072),
    Column("q_withdrawn", Kind.NUMERICAL, Role.PROVENANCE, "provenance", "", _WITHDRAWN, 0, 1),
)
_TARGETS = tuple(
    Column(name, Kind.NUMERICAL, Role.TARGET, "workload", "ratio to reference", _SCORE, 0.01, 1e6) for name in TARGETS
)


def explain_forbidden(name: str) -> str:
    """Return the reason why a column of this name must not be a feature, "" for an allowed name."""
    return next((why for pattern, why in ENCODE_THE_RESULT if re.search(pattern, name.casefold())), "")


def refuse_leaks(columns: Iterable[Column]) -> None:
    """Reject features named like a result. Raises: ValueError with the first such column and the reason."""
    for column in columns:
        if column.role is Role.FEATURE and (why := explain_forbidden(column.name)):
            raise ValueError(f"column {column.name!r} must not be a feature: {why}")


COLUMNS: tuple[Column, ...] = (
    *(column for column in PUBLISHED_COLUMNS if column.name not in OMITTED_PUBLISHED),
    *_ADDED,
    *_TARGETS,
)
"""Standard columns in table order: those of spec_cpu2017 under the same names, then the added ones."""
