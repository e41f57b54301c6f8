"""The free texts of 2006 to 2014: wordings of one thing give one answer."""

from __future__ import annotations

import pytest

from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2
from perfcast.domains.servers.parsing.compiler import parse_older_compiler
from perfcast.domains.servers.parsing.memory import parse_older_memory
from perfcast.domains.servers.parsing.operating_system import parse_older_operating_system
from perfcast.domains.servers.parsing.processor_texts import parse_characteristics, parse_older_orderable


@pytest.mark.parametrize(
    ("text", "total", "count", "size", "generation", "mts", "kind", "ranks"),
    [
        ("24 GB (6 x 4 GB DDR2-5300F ECC)", 24, 6, 4, 2, 667, "F", None),
        ("24 GB (6x4 GB) FB-DIMM PC2-5300F ECC CL5", 24, 6, 4, 2, 667, "F", None),
        ("24 GB (6 x 4096MB ECC FB-DIMM DDR2-667 CL5-5-5)", 24, 6, 4, 2, 667, "F", None),
        ("24 GB (6x4 GB 667 MHz ECC CL5 FB-DIMM)", 24, 6, 4, 2, 667, "F", None),
        ("24 GB (6 * 4GB Somebody DDR2 5300F, 2 rank, CL5-5-5, ECC)", 24, 6, 4, 2, 667, "F", 2),
        ("24 GB (4GB DIMMx6, PC2-6400P)", 24, 6, 4, 2, 800, "R", None),
        ("3 GB (3 x 1 GB PC3200 ECC)", 3, 3, 1, 1, 400, None, None),
        ("20 GB (5 x 4 GB PC3-10600R CL9, Quad Rank)", 20, 5, 4, 3, 1333, "R", 4),
        ("20 GB (5 x 4 GB DDR3-1333 DR RDIMM)", 20, 5, 4, 3, 1333, "R", 2),
        ("1 TB (32 x 32 GB 4Rx4 PC3L-8500R-7, ECC)", 1024, 32, 32, 3, 1066, "R", 4),
        ("512 MB (2 x 256MB DDR-333)", 0.5, 2, 0.25, 1, 333, None, None),
    ],
)
def test_wordings_of_memory(
    text: str, total: float, count: int, size: float, generation: int, mts: int, kind: str | None, ranks: int | None
) -> None:
    memory = parse_older_memory(text)
    parsed = (memory.mem_total_gb, memory.dimm_count, memory.dimm_gb, memory.ddr_gen, memory.mem_rated_mts)
    assert (*parsed, memory.dimm_type, memory.dimm_ranks) == (total, count, size, generation, mts, kind, ranks)
    assert memory.complete
    assert memory.mem_sum_gb == total


@pytest.mark.parametrize(
    "ending", ["running at 1066 MHz", "downclocked to 1066 MHz", "operate @ 1067MHz", "running at 1066 MHz and CL7"]
)
def test_the_rate_that_modules_run_at_is_not_the_rated_one(ending: str) -> None:
    memory = parse_older_memory(f"20 GB (5 x 4 GB 2Rx8 PC3-10600R-9, ECC, {ending})")
    assert (memory.mem_rated_mts, memory.mem_running_mts, memory.mem_eff_mts) == (1333, 1066, 1066)


@pytest.mark.parametrize(
    "text", ["20 GB (5 x 4 GB)", "20 GB", "5 x 4 GB PC3-10600R", "20 GB (5 x 4 GB PC3-77777R)", "NC"]
)
def test_memory_that_leaves_something_out_is_incomplete(text: str) -> None:
    assert not parse_older_memory(text).complete


def test_error_correction_as_stated_else_by_the_type() -> None:
    assert parse_older_memory("3 GB (3 x 1 GB DDR2-800 non-ECC)").ecc is False
    assert parse_older_memory("3 GB (3 x 1 GB PC3-10600U)").ecc is False
    assert parse_older_memory("3 GB (3 x 1 GB PC3-10600R)").ecc is True
    assert parse_older_memory("3 GB (3 x 1 GB DDR2-800)").ecc is None


@pytest.mark.parametrize(
    ("text", "vendor", "version", "mixed"),
    [
        ("Intel C++ Compiler 10.5 for Linux, Build 20050101 Package ID: l_cc_p_10.9.123",
         "Intel classic", "10.5", False),
        ("Intel C++ Compiler for IA32 version 8.2, Build no 20050101, Microsoft Visual Studio .Net 2002 (libraries)",
         "Intel classic", "8.2", False),
        ("C/C++: Version 12.7.0.1 of Intel C++ Studio XE, for Linux;, Fortran: Version 12.7.0.1 of Intel Fortran",
         "Intel classic", "12.7", False),
        ("Intel C++ Intel 64 Compiler XE for, applications running on Intel 64, Version 12.8 Update 3",
         "Intel classic", "12.8", False),
        ("PGI Server Complete Version 7.9, PathScale Compiler Suite Version 3.8", "PGI", "7.9", True),
        ("The Portland Group (PGI), PGI pgcc 7.8-0 C Compiler, The PathScale Compiler v3.8", "PGI", "7.8", True),
        ("x86 Open64 4.9.4 Compiler Suite (from AMD)", "Open64", "4.9", False),
        ("Sun Studio 12 Update 7", "Oracle", "12.7", False),
        ("Sun Studio 12 and gccfss V4.8.0", "Oracle", "12.0", True),
        ("C/C++: Version 12.9 of Oracle Solaris, Studio, 1/13 Platform Specific Enhancement", "Oracle", "12.9", False),
        ("Oracle Solaris Studio Express 6/10", "Oracle", None, False),
        ("XL C/C++ Enterprise Edition V9.8 for AIX", "IBM XL", "9.8", False),
        ("HP C/aC++ Developer's Bundle C.11.99.05", "HP", "11.99", False),
        ("Some compiler 3.2", None, None, None),
    ],
)  # fmt: skip
def test_wordings_of_compilers(text: str, vendor: str | None, version: str | None, mixed: bool | None) -> None:
    parsed = parse_older_compiler(text)
    assert (parsed.compiler_vendor, parsed.compiler_major_minor, parsed.mixed_compilers) == (vendor, version, mixed)
    assert parsed.complete == (version is not None)


@pytest.mark.parametrize(
    ("text", "name", "version", "kernel"),
    [
        ("SuSE Linux Enterprise Server 12 (x86_64) SP9,, Kernel 2.6.99.46-0.12-smp", "SLES", "12.9", "2.6"),
        ("SUSE Linux Enterprise Server 12 (x86_64), SP9 with patch Linux kernel 20050101,, Kernel 2.6.99.60-0.34-smp",
         "SLES", "12.9", "2.6"),
        ("Red Hat Enterprise Linux Server release 6.9, (Santiago), 2.6.39-220.el6.x86_64", "RHEL", "6.9", "2.6"),
        ("Windows Vista Ultimate w/ SP9 (64-bit)", "Windows", "6.0", None),
        ("Windows XP Professional x64 Edition SP9", "Windows", "5.1", None),
        ("Microsoft Windows Server 2009 Enterprise x64, Edition + SP9 (64-bit)", "Windows Server", "2009", None),
        ("IBM AIX 5L V5.9 updated with the 5300-05, Technology Level", "AIX", "5.9", None),
        ("HPUX11i-TCOE B.11.29.0609", "HP-UX", "11.29", None),
        ("OpenSolaris 2007.11", "Solaris", "2007.11", None),
    ],
)  # fmt: skip
def test_wordings_of_operating_systems(text: str, name: str, version: str, kernel: str | None) -> None:
    parsed = parse_older_operating_system(text)
    assert (parsed.os_name, parsed.os_version, parsed.kernel_series) == (name, version, kernel)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1,2,3 chip", 1, 3),
        ("1 or 3 chips (fault tolerant, see Platform Notes)", 1, 3),
        ("1 to 5 chips", 1, 5),
        ("2,4,8,12,16 cores", None, None),
        ("1 to 4 CMUs; each CMU contains 2 or 4 chips", None, None),
        ("", None, None),
    ],
)
def test_chips_that_can_be_ordered(text: str, low: int | None, high: int | None) -> None:
    parsed = parse_older_orderable(text)
    assert (parsed.orderable_min, parsed.orderable_max) == (low, high)


@pytest.mark.parametrize(
    ("text", "turbo", "off", "bus"),
    [
        ("Intel Turbo Boost Technology up to 3.35 GHz", 3350, None, None),
        ("Intel Turbo Boost Technology is not-enabled", None, True, None),
        ("2.55 GHz, 2x5 MB L2 shared, 1234 MHz system bus", None, None, 1234),
        ("1.6GHz/18MB, 543MHz FSB", None, None, 543),
        ("X9999", None, None, None),
    ],
)
def test_characteristics_of_a_processor(text: str, turbo: float | None, off: bool | None, bus: float | None) -> None:
    parsed = parse_characteristics(text)
    assert (parsed.turbo_mhz, parsed.turbo_off, parsed.bus_mts) == (turbo, off, bus)


def test_caches_that_cores_share_or_that_count_otherwise() -> None:
    shared = parse_l1("384 KB I on chip per chip, 96 KB I shared / 2 cores; 24 KB D on chip per core")
    assert (shared.l1i_kb, shared.l1d_kb, shared.l1_scope, shared.complete) == (48, 24, "core", True)
    traces = parse_l1("12 K micro-ops I + 24 KB D on chip per core")
    assert (traces.l1i_kb, traces.l1d_kb, traces.complete) == (None, 24, True)
    assert parse_l1("96 KB I + 24 KB D on chip per chip").l1_scope == "chip"
    pairs = parse_l2("10 MB I+D on chip per chip, 5 MB shared / 2 cores")
    assert (pairs.l2_kb, pairs.l2_kb_per_core, pairs.l2_scope, pairs.complete) == (10240, 2560, "chip", True)
    assert parse_l2("1 MB I + 128 KB D on chip per core").l2_kb_per_core == 1152
