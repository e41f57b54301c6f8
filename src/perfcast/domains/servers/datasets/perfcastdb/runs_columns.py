"""Columns of the PerfCastDB table, except the targets: those are the tests in the files."""

from __future__ import annotations

from perfcast.domains.servers.datasets.perfcastdb.sample_skus import FIELDS
from perfcast.schema.table import Column, Kind, Role, Tag

Tags = tuple[Tag, ...]
_CONFIG = (Tag.CONFIG,)


def _number(  # noqa: PLR0917 - the order of Column's fields
    name: str,
    group: str,
    unit: str,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
    tags: Tags = _CONFIG,
) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, low, high, tags)


def _category(name: str, group: str, meaning: str, tags: Tags = _CONFIG) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.FEATURE, group, meaning=meaning, tags=tags)


def _key(name: str, group: str, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.CATEGORICAL, Role.KEY, group, meaning=meaning, tags=tags)


def _audit(name: str, meaning: str, *, unit: str = "", group: str = "workload") -> Column:
    return Column(name, Kind.NUMERICAL, Role.PROVENANCE, group, unit, meaning, low=0)


def _label(name: str, meaning: str, *, group: str = "workload") -> Column:
    return Column(name, Kind.CATEGORICAL, Role.PROVENANCE, group, meaning=meaning)


def _sku_columns() -> list[Column]:
    unit_by_ending = {"mhz": "MHz", "mb": "MB", "w": "W", "mts": "MT/s"}
    return [
        _number(name, "processor", unit_by_ending.get(name.rsplit("_", 1)[1], ""), f"sample table, column {title}", 0)
        for name, (title, _) in FIELDS.items()
    ]


KEYS = [
    _key("result_id", "workload", "run and suite", Tag.ROW),
    _key("run_id", "workload", "run identifier of the publisher", Tag.BLOCK),
    _key("cpu_model", "processor", "normalized processor name", Tag.ENTITY, Tag.IDENTITY, Tag.CONFIG),
]
WORKLOAD = [
    _category("suite", "workload", "benchmark suite", (Tag.TASK, Tag.CONFIG)),
    _category("suite_version", "workload", "version of the suite"),
    _category("preset", "workload", "compiler, instruction set and mode of the suite, as published"),
    _category("preset_isa", "workload", "widest instruction set of the preset: SSE, AVX, AVX2 or AVX512"),
]
PROCESSOR = [
    _category("cpu_series", "processor", "Xeon tier or series", (Tag.CONFIG, Tag.SLICE)),
    _category("stepping", "processor", "stepping of the die"),
    _number("base_mhz", "processor", "MHz", "base clock", 800, 6000),
    _number("max_turbo_mhz", "processor", "MHz", "highest clock of a single core", 800, 6500),
    _number("all_core_turbo_mhz", "processor", "MHz", "highest clock with all cores active", 800, 6500),
    _number("tdp_w", "processor", "W", "thermal design power", 10, 600),
    _number("cores_per_chip_of_cpu_model", "processor", "", "cores per processor", 1, 192),
    _number("l1i_kb", "processor", "KB", "first-level instruction cache per core", 16, 96),
    _number("l1d_kb", "processor", "KB", "first-level data cache per core", 16, 96),
    _number("l2_kb_per_core", "processor", "KB", "second-level cache per core", 256, 4096),
    _number("l3_mb_per_chip", "processor", "MB", "last-level cache per processor", 2, 1152),
    _number("has_avx2", "processor", "", "1 with AVX2", 0, 1),
    _number("has_avx512", "processor", "", "1 with AVX-512 Foundation", 0, 1),
    _number("has_avx512_vnni", "processor", "", "1 with AVX-512 VNNI", 0, 1),
    _number("has_amx", "processor", "", "1 with AMX tiles", 0, 1),
    _number("qat_count", "processor", "", "QuickAssist devices", 0, 64),
    _number("dsa_count", "processor", "", "Data Streaming Accelerators", 0, 64),
    _number("iax_count", "processor", "", "In-Memory Analytics Accelerators", 0, 64),
    *_sku_columns(),
]
MEMORY = [
    _number("mem_total_gb", "memory", "GB", "installed memory, including HBM", 8, 24576),
    _number("hbm_gb", "memory", "GB", "high-bandwidth memory on the processors; 0 without", 0, 1024),
    _number("hbm_count", "memory", "", "stacks of high-bandwidth memory", 0, 64),
    _number("hbm_mts", "memory", "MT/s", "transfer rate of the high-bandwidth memory", 1000, 10000),
    _number("dimm_count", "memory", "", "installed DIMMs, without HBM", 0, 400),
    _number("dimm_gb", "memory", "GB", "capacity of a DIMM; the mean where they differ", 1, 512),
    _number("dimm_groups", "memory", "", "different kinds of DIMM", 0, 8),
    _number("mem_channels_filled", "memory", "", "memory channels of the system with a DIMM", 0, 256),
    _number("ddr_gen", "memory", "", "DDR generation", 3, 6),
    _number("mem_rated_mts", "memory", "MT/s", "rated transfer rate of the slowest DIMM", 1333, 12800),
    _number("mem_running_mts", "memory", "MT/s", "configured transfer rate", 1333, 12800),
    _category("dimm_vendor", "memory", "vendor of the DIMMs, from the part number"),
    _category("dimm_type", "memory", "module type, R registered, from the part number"),
    _number("dimm_ranks", "memory", "", "ranks of a DIMM, from the part number", 1, 8),
    _number("dimm_width", "memory", "bit", "data width of a DRAM device, from the part number", 4, 16),
    _number("dimm_density_gbit", "memory", "Gbit", "capacity of a DRAM device, from the part number", 1, 64),
    _number("dimm_devices", "memory", "", "DRAM devices of a DIMM, from the part number", 1, 160),
    _number("dimm_part_mts", "memory", "MT/s", "rated transfer rate, from the part number", 1333, 12800),
    _number("numa_balancing", "memory", "", "1 with automatic NUMA balancing", 0, 1),
]
SYSTEM = [
    _number("chips", "system", "", "processors of the system", 1, 32, (Tag.IDENTITY, Tag.CONFIG)),
    _number("cores_enabled_total", "system", "", "enabled cores of all processors", 1, 2048, (Tag.CONFIG, Tag.SCALING)),
    _number("threads_per_core", "system", "", "hardware threads per core", 1, 8),
    _number("numa_nodes", "system", "", "NUMA nodes", 1, 64),
    _category("product", "system", "product name of the server"),
    _category("os_name", "system", "operating system"),
    _category("os_version", "system", "release of the operating system"),
    _number("turbo", "system", "", "1 with turbo clocks enabled", 0, 1),
    _category("power_policy", "system", "power and performance policy"),
    _category("governor", "system", "frequency governor"),
    _number("max_c_state", "system", "", "deepest allowed C-state", 0, 15),
    _category("prefetchers", "system", "enabled hardware prefetchers"),
    _category("bios_tme", "system", "firmware: total memory encryption"),
    _category("bios_tme_mt", "system", "firmware: multi-tenant memory encryption"),
    _category("bios_sgx", "system", "firmware: software guard extensions"),
    _category("bios_snc", "system", "firmware: sub-NUMA clustering, coded"),
    _category("bios_volatile_mode", "system", "firmware: volatile memory mode, coded"),
    _category("bios_amp_prefetch", "system", "firmware: AMP prefetch"),
    _category("bios_next_page_prefetch", "system", "firmware: first-level next page prefetcher"),
]
PROVENANCE = [
    _label("published_subset", "train or test, as published"),
    _audit("iterations", "iterations averaged in the targets"),
    _audit("tests", "number of tests of the run"),
    _audit("spread_median", "(max - min) / mean over iterations, median over the tests"),
    _audit("spread_max", "(max - min) / mean over iterations, maximum over the tests"),
    _label("sku_code", "code of the processor sample", group="processor"),
    _label("microcode", "microcode revision; nearly unique per run", group="processor"),
    _audit("sampled_mhz", "clock when the run was recorded", unit="MHz", group="processor"),
    _audit("mem_seen_gb", "memory visible to the operating system", unit="GB", group="memory"),
    _label("dimm_part", "part numbers of the DIMMs", group="memory"),
    _label("source_file", "file of the run"),
    _audit("source_line", "first line of the run in that file"),
]
COLUMNS = [*KEYS, *WORKLOAD, *PROCESSOR, *MEMORY, *SYSTEM, *PROVENANCE]


def target(name: str, suite: str, test: str, unit: str, *, lower_is_better: bool) -> Column:
    """Declare the target of one test of a suite; it is missing on runs of other suites."""
    better = "lower" if lower_is_better else "higher"
    meaning = f"{suite}: {test}, mean over iterations; {better} is better"
    return Column(name, Kind.NUMERICAL, Role.TARGET, "workload", unit, meaning, low=0)
