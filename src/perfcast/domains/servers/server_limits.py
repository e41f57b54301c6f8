"""Limits of real servers. A description that breaks one is refused; each was counted on the published results."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from perfcast.domains.servers.processors import cloud_instances
from perfcast.domains.servers.processors.facts import THREADS_PER_CORE, family_table
from perfcast.domains.servers.server_fields import read_column_rule
from perfcast.inference.cells import Cells
from perfcast.inference.rules.limits import Limits, Violation, name_kinds

_DDR_RATES = {2: (400, 1066), 3: (800, 2133), 4: (1600, 3600), 5: (3200, 12800)}
"""Lowest and highest rate that modules of a DDR generation are sold for. Units: MT/s."""
_DIMMS_PER_CHANNEL = 2
_NODE_SOCKETS = 8
"""Sockets from which node controllers join a CPU model to more of them than it links itself."""
_CAPACITY_TOLERANCE = 0.02
_TWO_KINDS_OF_CORES = (
    "Lakefield",
    "Alder Lake",
    "Raptor Lake",
    "Meteor Lake",
    "Arrow Lake",
    "Arrow Lake-U",
    "Lunar Lake",
    "Apple M",
)
_ONE_KIND_OF_CORE = re.compile(r"(celeron|pentium gold) g\d|core i3-1[2-4][13]00[eft]*$|core i5-12[456]00[eft]*$")
"""CPU models of these families with performance cores alone (counts of Intel ARK)."""
_LPDDR_ON_PACKAGE = ("Apple M", "Grace", "Lunar Lake", "Vera")
_HYBRID = "performance and efficient cores together"
_EFFICIENT_CORES = np.log(1.5)
"""Deduction where two cores of three are efficient and each counts half: 8 + 16, 8 + 12, 6 + 8 and 2 + 8 cores have
0.67, 0.70, 0.71 and 0.60 of their number. In the rate suites an efficient core of the measured Sierra Forest has 0.40
and 0.27 of the score of a core of Raptor Lake E, at 0.58 of its clock."""


def find_threads(families: np.ndarray) -> np.ndarray:
    """Return how many threads a core of each family runs, NaN where no table tells. Shapes: (n,) texts -> (n,)."""
    known = {family: float(row["smt"]) for family, row in family_table().items() if row["smt"]}
    return np.array([known.get(family, np.nan) for family in families.tolist()])


@dataclass(frozen=True)
class _Limit:
    """One limit. A missing cell breaks nothing.

    `named`: columns of the wrong value, the usual one first. `fact`: text of a row that breaks the limit.
    """

    named: tuple[str, ...]
    is_broken: Callable[[Cells], np.ndarray]
    fact: Callable[[Any], str]
    remedy: str


def _has_rate_of_other_generation(cells: Cells) -> np.ndarray:
    unlimited = (-np.inf, np.inf)
    low, high = np.array([_DDR_RATES.get(key, unlimited) for key in cells["ddr_gen"].tolist()]).reshape(-1, 2).T
    return np.asarray((cells["mem_rated_mts"] < low) | (cells["mem_rated_mts"] > high))


def _has_other_capacity(cells: Cells) -> np.ndarray:
    modules = cells["dimm_count"] * cells["dimm_gb"] + np.nan_to_num(cells["hbm_gb"])
    differs = np.abs(cells["mem_total_gb"] - modules) > _CAPACITY_TOLERANCE * cells["mem_total_gb"]
    return np.asarray(differs & (np.nan_to_num(cells["dimm_groups"], nan=1) == 1))


_INSTALLED = ("dimm_count", "mem_total_gb")
_LIMITS = (
    _Limit(
        ("cores_per_chip_stated", "cores_enabled_total", "cores_per_chip_of_cpu_model", "chips"),
        lambda f: f["cores_enabled_total"] > f["chips"] * f["cores_per_chip_of_cpu_model"],
        lambda r: (
            f"{r.cores_enabled_total / r.chips:g} per chip is more than "
            f"the {r.cores_per_chip_of_cpu_model:g} of {{entity}}"
        ),
        "correct it, or name another processor",
    ),
    _Limit(
        ("cores_enabled_total", "cores_per_chip_stated", "chips"),
        # one vCPU of an instance may be half a core
        lambda f: (f["cores_enabled_total"] % f["chips"] > 0) & (f["chips"] > 1),
        lambda r: f"{r.cores_enabled_total:g} in total cannot be shared equally by {r.chips:g} chips",
        "correct it, or the number of chips",
    ),
    _Limit(
        ("chips",),
        lambda f: (f["chips"] > f["max_sockets"]) & (f["max_sockets"] < _NODE_SOCKETS),
        lambda r: f"{r.chips:g} is more than the {r.max_sockets:g} sockets that {{entity}} supports",
        "correct it, or name another processor",
    ),
    _Limit(
        ("threads_per_core",),
        lambda f: ~np.isnan(f["threads_per_core"]) & ~np.isin(f["threads_per_core"], THREADS_PER_CORE),
        lambda r: f"{r.threads_per_core:g} threads per core exist in no processor",
        f"write one of {', '.join(map(str, THREADS_PER_CORE))}",
    ),
    _Limit(
        ("threads_per_core",),
        lambda f: f["threads_per_core"] > find_threads(f["family"]),
        lambda r: f"{r.threads_per_core:g} threads per core are more than those of {r.family}",
        "correct it, or leave it out",
    ),
    _Limit(
        ("base_mhz", "max_turbo_mhz"),
        lambda f: f["base_mhz"] > f["max_turbo_mhz"],
        lambda r: f"the nominal {r.base_mhz:g} MHz is above the turbo clock of {r.max_turbo_mhz:g} MHz",
        "correct it, or the other clock",
    ),
    _Limit(
        (*_INSTALLED, "mem_channels_per_chip", "chips"),
        lambda f: f["dimm_count"] > _DIMMS_PER_CHANNEL * f["chips"] * f["mem_channels_per_chip"],
        lambda r: (
            f"{r.dimm_count:g} modules are more than {_DIMMS_PER_CHANNEL} in each of the "
            f"{r.chips * r.mem_channels_per_chip:g} memory channels"
        ),
        "correct it, or set a different memory.channels",
    ),
    _Limit(
        ("mem_total_gb", "dimm_count", "dimm_gb"),
        _has_other_capacity,
        lambda r: f"{r.mem_total_gb:g} GiB in total is not {r.dimm_count:g} modules of {r.dimm_gb:g} GiB",
        "correct one of them, or leave out the total",
    ),
    _Limit(
        ("mem_rated_mts", "ddr_gen"),
        _has_rate_of_other_generation,
        lambda r: (
            f"{r.mem_rated_mts:g} MT/s is no rate of DDR{r.ddr_gen:g}, which has "
            f"{_DDR_RATES[int(r.ddr_gen)][0]} to {_DDR_RATES[int(r.ddr_gen)][1]} MT/s"
        ),
        "correct it, or the DDR generation",
    ),
    _Limit(
        ("mem_running_mts", "mem_rated_mts"),
        lambda f: f["mem_running_mts"] > f["mem_rated_mts"],
        lambda r: f"the running {r.mem_running_mts:g} MT/s is above the rated {r.mem_rated_mts:g} MT/s",
        "correct it, or the other rate",
    ),
)


def _is_hybrid(cpu_model: object, family: object) -> bool:
    """Return whether a CPU model has performance and efficient cores."""
    return family in _TWO_KINDS_OF_CORES and not _ONE_KIND_OF_CORE.match(str(cpu_model))


class ServerLimits(Limits):
    """Limits of servers that SPEC measured."""

    kind_columns = ("cpu_vendor", "family", "cpu_model")
    # fewer cores are the same CPU model with some cores off; more cores are another model
    capacities: Mapping[str, str] = {"cores_per_chip_stated": "cores_per_chip_of_cpu_model"}
    largest_values: Mapping[str, str] = {
        "chips": "max_sockets",
        "mem_channels_per_chip": "mem_channels_per_chip",
        "mem_rated_mts": "mem_max_mts_1dpc",
    }
    # only what arithmetic ties to a column: cache, power and clocks stay when the number of cores varies
    replaced = read_column_rule("replaced")

    def find_violations(self, cells: Cells) -> Iterator[Violation]:
        """Yield every limit that a row breaks, limit by limit."""
        for limit in _LIMITS:
            with np.errstate(divide="ignore", invalid="ignore"):
                broken = limit.is_broken(cells)
            for position in np.flatnonzero(broken):
                row = SimpleNamespace(**{name: values[position] for name, values in cells.items()})
                yield Violation(int(cells.index[position]), limit.named, limit.fact(row), limit.remedy)

    def predict_logs(self, cells: Cells, predict: Callable[[Cells], np.ndarray]) -> np.ndarray:
        """Return the logarithms of results; in a rate suite an instance has its share of the cores of a loaded host."""
        logs = predict(cells)
        is_rate = np.array([str(suite).endswith("rate") for suite in cells["suite"].tolist()])
        rows = np.flatnonzero(cloud_instances.is_instance(cells) & is_rate)
        if len(rows):
            hosts, shares = cloud_instances.fill_host(cells, rows)
            logs = logs.copy()
            logs[rows] = predict(hosts) + shares[:, None]
        return logs

    def limit_trust(self, cells: Mapping[str, Any]) -> str:
        """Return why an answer about a share of a host is never of high trust."""
        if not cloud_instances.is_instance(cells)[0]:
            return ""
        return "a share of a host" if cells["cores_per_chip_stated"] < cells["cores_per_chip_of_cpu_model"] else ""

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield vendor, family, and what is special about cores and memory."""
        family = cells["family"]
        yield from name_kinds({"processors of": cells["cpu_vendor"], "family": family})
        if _is_hybrid(cells["cpu_model"], family):
            yield _HYBRID
        if family in _LPDDR_ON_PACKAGE:
            yield "LPDDR memory on the package"

    def find_deductions(self, cells: Mapping[str, Any], measured_kinds: Container[str]) -> np.ndarray:
        """Count an efficient core half in the rate suites, which run on all cores, as long as no result tells more."""
        if _HYBRID in measured_kinds:
            return np.zeros(1)
        rows = zip(*(cells[name].tolist() for name in ("cpu_model", "family", "suite")), strict=True)
        counts_less = [suite.endswith("rate") and _is_hybrid(model, family) for model, family, suite in rows]
        return np.where(counts_less, _EFFICIENT_CORES, 0.0)


class LimitsOfCpu2026(ServerLimits):
    """Limits of servers in SPEC CPU2026, whose estimates rest on those in SPEC CPU2017."""

    # slope of the errors of unseen CPU models on those of the base, 13 CPU models; see docs/studies/tried.md
    carried = 0.78
