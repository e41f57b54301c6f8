"""Standard columns of spec_cpu2017: names, units, bounds, groups, roles and tags."""

from __future__ import annotations

from dataclasses import replace

from perfcast.schema.table import Column, Kind, Role, Tag

_IDENTITY, _SLICE = Tag.IDENTITY, Tag.SLICE


def _number(name: str, group: str, unit: str, meaning: str, bounds: tuple[float, float], *tags: Tag) -> Column:
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, unit, meaning, *bounds, tags)


def _flag(name: str, group: str, meaning: str, *tags: Tag, role: Role = Role.FEATURE) -> Column:
    return Column(name, Kind.NUMERICAL, role, group, "", meaning, 0, 1, tags)


def _name(name: str, group: str, meaning: str, *tags: Tag, role: Role = Role.FEATURE) -> Column:
    return Column(name, Kind.CATEGORICAL, role, group, "", meaning, tags=tags)


def _date(name: str, group: str, unit: str, meaning: str, *tags: Tag) -> Column:
    return Column(name, Kind.DATE, Role.PROVENANCE, group, unit, meaning, tags=tags)


_KEYS = (
    Column("result_id", Kind.TEXT, Role.KEY, "provenance", "", "identifier: arrival day and number", tags=(Tag.ROW,)),
    Column(
        "submission_id",
        Kind.TEXT,
        Role.KEY,
        "provenance",
        "",
        "test campaign: vendor, system, processor, chips and month",
        tags=(Tag.BLOCK,),
    ),
    _name("cpu_model_id", "processor", "cpu_model as one word", role=Role.KEY),
    _name(
        "cpu_model", "processor", "normalized processor name", _IDENTITY, Tag.ENTITY, role=Role.KEY
    ),
)  # fmt: skip

_WORKLOAD = (
    _name("suite", "workload", "suite: CINT or CFP, rate or speed; the dump's CINT2017 is CINT2017speed", Tag.TASK),
    _name("metric", "workload", "rate (throughput of many copies) or speed (time of one copy)"),
    _name("domain", "workload", "int (integer) or fp (floating point)"),
    _flag("parallel", "workload", "1 where benchmarks ran with several threads"),
    _name("compiler_vendor", "workload", "vendor of the C/C++ compiler"),
    _name("compiler_major_minor", "workload", "version of the C/C++ compiler as major.minor"),
    _flag("compiler_classic", "workload", "1 for an Intel classic compiler"),
    _flag("oneapi", "workload", "1 for an Intel oneAPI compiler"),
    _flag("mixed_fortran", "workload", "1 where Fortran and C/C++ use different compilers"),
    _name("base_ptr", "workload", "pointer size of the base run: 32, 64 or 32/64 bits"),
)

_PROCESSOR = (
    _name("cpu_vendor", "processor", "vendor of the processor", _SLICE),
    _name("family", "processor", "microarchitecture and market, from processors/families.csv", _SLICE),
    _name("series", "processor", "product line"),
    _name("tier", "processor", "market tier within the product line"),
    _name("suffix", "processor", "letters after the model number; none without letters"),
    _name("isa", "processor", "instruction set architecture: x86, arm, power, sparc"),
    _number("base_mhz", "processor", "MHz", "nominal clock", (800, 6000), Tag.SCALING),
    _number("max_turbo_mhz", "processor", "MHz", "highest clock of a core", (800, 6500)),
    _number("all_core_turbo_mhz", "processor", "MHz", "highest clock with all cores busy", (800, 6500)),
    _number("tdp_w", "processor", "W", "thermal design power", (10, 1000)),
    _number(
        "cores_per_chip_of_cpu_model",
        "processor",
        "",
        "cores per processor: most frequent value over its results",
        (1, 512),
    ),
    _number("l1i_kb", "processor", "KiB", "first-level instruction cache per core", (8, 512)),
    _number("l1d_kb", "processor", "KiB", "first-level data cache per core", (8, 512)),
    _number("l2_kb_per_core", "processor", "KiB", "second-level cache per core", (64, 16384)),
    _name("l2_scope", "processor", "scope of the stated second-level cache: core or chip"),
    _number("l3_mb_per_chip", "processor", "MiB", "third-level cache per processor", (0, 4096)),
    _number("l3_slice_mb", "processor", "MiB", "third-level cache slice shared by neighboring cores", (0, 4096)),
    _number("l3_cores_per_slice", "processor", "", "cores that share a third-level cache slice", (1, 512)),
    _flag("l3_asymmetric", "processor", "1 where third-level cache slices differ in size"),
    _number("l4_mb", "processor", "MiB", "further cache as stated; 0 without one", (0, 65536)),
    _number("simd_bits", "processor", "bit", "width of the vector units", (64, 2048)),
    _number("fma_units", "processor", "", "fused multiply-add units per core", (1, 8)),
    _flag("has_amx", "processor", "1 with a matrix unit (AMX)"),
    _number("mem_channels_per_chip", "processor", "", "DDR channels per processor", (1, 32)),
    _number("mem_max_mts_1dpc", "processor", "MT/s", "highest memory rate with one DIMM per channel", (800, 12800)),
    _number("mem_max_mts_2dpc", "processor", "MT/s", "highest memory rate with two DIMMs per channel", (800, 12800)),
    _number("mem_mrdimm_mts", "processor", "MT/s", "highest memory rate with multiplexed-rank DIMMs", (6400, 25600)),
    _number("pcie_gen", "processor", "", "highest PCI Express generation", (1, 8)),
    _number("upi_links", "processor", "", "UPI links between processors", (0, 16)),
    _number("max_sockets", "processor", "", "largest number of sockets", (1, 64)),
    _name("process_node", "processor", "marketed manufacturing process"),
    _date("launch_quarter", "processor", "quarter", "launch of the processor"),
)

_MEMORY = (
    _number("mem_total_gb", "memory", "GiB", "memory capacity", (1, 131072)),
    _number("hbm_gb", "memory", "GiB", "high-bandwidth memory in the package, part of mem_total_gb", (0, 8192)),
    _number("dimm_count", "memory", "", "installed DIMMs", (0, 2048)),
    _number("dimm_gb", "memory", "GiB", "capacity of a DIMM of the largest group", (0.5, 2048)),
    _number("dimm_groups", "memory", "", "different kinds of DIMM", (0, 16)),
    _number("dimm_ranks", "memory", "", "ranks of a DIMM, including stacked dies", (1, 32)),
    _number("dimm_width", "memory", "bit", "data width of a DRAM device", (4, 32)),
    _name("dimm_type", "memory", "R registered, L load-reduced, E or U unbuffered, S small, M multiplexed"),
    _flag("ecc", "memory", "1 with error correction"),
    _number("ddr_gen", "memory", "", "DDR generation", (2, 6)),
    _number("mem_rated_mts", "memory", "MT/s", "rated transfer rate of the DIMMs", (400, 12800)),
    _number("mem_running_mts", "memory", "MT/s", "stated running transfer rate of the DIMMs", (400, 12800)),
    _number(
        "mem_eff_mts",
        "memory",
        "MT/s",
        "effective transfer rate: running, else rated, at most the processor's limit",
        (400, 12800),
    ),
)  # fmt: skip

_SYSTEM = (
    _name("hw_vendor", "system", "vendor of the machine, aliases merged", _SLICE),
    _number("chips", "system", "", "processors of the machine", (1, 64), _IDENTITY, _SLICE),
    _number("cores_enabled_total", "system", "", "enabled cores of all processors, corrected", (1, 8192), Tag.SCALING),
    _number("threads_per_core", "system", "", "enabled hardware threads per core", (1, 8)),
    _number("orderable_min", "system", "", "smallest number of processors sold", (1, 128)),
    _number("orderable_max", "system", "", "largest number of processors sold", (1, 128)),
    _name("os_name", "system", "operating system"),
    _name("os_version", "system", "release of the operating system"),
    _name("kernel_series", "system", "first two numbers of the kernel version"),
    _name("arch", "system", "architecture of the operating system; the processor's where not stated"),
    _name("file_system", "system", "file system of the benchmark"),
    _name("storage_class", "system", "ram, nvme, ssd or hdd"),
    _number("storage_gb", "system", "GB", "raw storage capacity", (1, 1e6)),
)

_LABELS = (
    Column("base_score", Kind.NUMERICAL, Role.TARGET, "workload", "ratio to reference", "base result", 0.01, 1e6),
    Column("peak_score", Kind.NUMERICAL, Role.PROVENANCE, "workload", "ratio to reference", "peak result", 0.01, 1e6),
    Column(
        "energy_base",
        Kind.NUMERICAL,
        Role.PROVENANCE,
        "workload",
        "ratio to reference",
        "base energy result",
        0.01,
        1e6,
    ),
)

_AUDIT = (
    _date("published_month", "provenance", "month", "month of publication", Tag.TIME),
    _date("test_month", "provenance", "month", "month of the test"),
    _date("hw_avail", "provenance", "month", "availability of the hardware"),
    _date("sw_avail", "provenance", "month", "availability of the software"),
    _date("arrival_day", "provenance", "day", "day on which SPEC received the result"),
    _date("updated", "provenance", "month", "last change of the published page; unknown at publication"),
    _name("system_stem", "provenance", "name of the machine without its processor", role=Role.PROVENANCE),
    _name("tester", "provenance", "tester of the result", role=Role.PROVENANCE),
    _name("sponsor", "provenance", "sponsor of the test", role=Role.PROVENANCE),
    _name("peak_ptr", "provenance", "pointer size of the peak run", role=Role.PROVENANCE),
    _flag("xalanc_notice", "provenance", "1 under SPEC's notice of 2024 on 523/623.xalancbmk", role=Role.PROVENANCE),
    Column("cores_per_chip_stated", Kind.NUMERICAL, Role.PROVENANCE, "provenance", "", "cores as published", 1, 512),
    _flag("q_cores_mismatch", "provenance", "1 where stated cores are not the processor's", role=Role.PROVENANCE),
    _flag("q_mem_arith", "provenance", "1 where the capacity differs from DIMMs x size", role=Role.PROVENANCE),
    _flag("q_ddr_gen", "provenance", "1 where the DDR generation was corrected", role=Role.PROVENANCE),
    _flag("q_date", "provenance", "1 where a date after publication was removed", role=Role.PROVENANCE),
    _flag("q_peak_lt_base", "provenance", "1 where the peak score is below the base score", role=Role.PROVENANCE),
    _flag("q_near_dup", "provenance", "1 where system, scores and month repeat another result", role=Role.PROVENANCE),
    _flag(
        "q_score_residual",
        "provenance",
        "1 where the base score is far from the median of processor, chips and suite",
        role=Role.PROVENANCE,
    ),
    _flag(
        "q_far_below_peers",
        "provenance",
        "1 where the base score is below 2/3 of the median of processor, chips, suite and memory",
        Tag.EXCLUDED,
        role=Role.PROVENANCE,
    ),
    _name("source", "provenance", "source of the row", role=Role.PROVENANCE),
    Column("file", Kind.TEXT, Role.PROVENANCE, "provenance", "", "file of the row"),
    Column("line", Kind.NUMERICAL, Role.PROVENANCE, "provenance", "", "line of the file, without later rows", 1, None),
)  # fmt: skip


def _add_config_tag(column: Column) -> Column:
    """Add tag CONFIG to every feature and to the processor's name: together they are the configuration."""
    if column.role is Role.FEATURE or Tag.ENTITY in column.tags:
        return replace(column, tags=(*column.tags, Tag.CONFIG))
    return column


COLUMNS: tuple[Column, ...] = tuple(
    map(_add_config_tag, (*_KEYS, *_WORKLOAD, *_PROCESSOR, *_MEMORY, *_SYSTEM, *_LABELS, *_AUDIT))
)
"""Standard columns in table order."""
