"""Texts of the Java benchmarks' dumps: virtual machines, modules, caches and systems in their many spellings."""

import pytest

from perfcast.domains.servers.datasets.spec_java.java_machines import java_cpu_model_key
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, rewrite_cache_text
from perfcast.domains.servers.parsing.jvm import normalize_jvm_vendor, parse_jvm
from perfcast.domains.servers.parsing.memory import parse_dimms, parse_module
from perfcast.domains.servers.parsing.operating_system import parse_any_operating_system


@pytest.mark.parametrize(
    ("text", "name", "release", "update"),
    [
        ("Java HotSpot(TM) 64-Bit Server VM (build 24.99-b11, mixed mode), version 1.7.0_99", "HotSpot", 7, 99),
        ("Java HotSpot(TM) 64-Bit Server VM 18.9 (build 11.0.33+1-LTS, mixed mode)", "HotSpot", 11, 33),
        ("Java HotSpot(TM) 64-Bit Server VM 18.9(build 11+77, mixed mode)", "HotSpot", 11, None),
        ("Oracle Java SE 8u999 Java HotSpot 64-bit Server VM (build 25.999-b01, mixed mode)", "HotSpot", 8, 999),
        ("Oracle Java SE 29.0.7.1 Java HotSpot 64-bit Server VM, version 29.0.7.1", "HotSpot", 29, 7),
        ("Oracle JDK v31.0.2 server", "HotSpot", 31, 2),
        ("Maker JRockit(R) 6 P28.9.0 (build P28.9.0-1-2-1.6.0_88-20300101-windows-x86_64)", "JRockit", 6, 88),
        ("Maker 6 P28.9.0 (build P28.9.0-1-2-1.6.0_88-20300101)", "JRockit", 6, 88),
        ("IBM J9 VM (build pwa6460sr77-20300101_01(SR77))", "J9", 6, 77),
        ("IBM J9 VM 8.0.5.99 (IBM JDK8 SR5 FP99)", "J9", 8, 5),
        ("IBM J9 VM (build 2.6, JRE 1.7.0 Windows amd64-64 20300101_1 (JIT enabled)", "J9", 7, None),
        ('openjdk version "11.0.9.9" 2030-01-01 LTS', "OpenJDK", 11, 9),
        ("Oracle GraalVM EE 20.9.0 (build 11.0.7+8-LTS-jvmci-20.1-b02)", "GraalVM", 11, 7),
        ("Server VM", None, None, None),
    ],
)
def test_jvm(text, name, release, update):
    parsed = parse_jvm(text)
    assert (parsed.jvm_name, parsed.jvm_release, parsed.jvm_update) == (name, release, update)
    assert parsed.complete == (name is not None)


def test_vendors_of_virtual_machines():
    names = ["Oracle Corp.", "oracl", "Sun Microsystems Inc.", "Bea Systems,Inc.", "IBM Corparation", "Azul", " "]
    assert [normalize_jvm_vendor(name) for name in names] == ["Oracle", "Oracle", "Oracle", "BEA", "IBM", "Azul", None]


@pytest.mark.parametrize(
    ("text", "count", "size", "total"),
    [
        ("12 x 16384 MB", 12, 16, 192),
        ("8 x 8196 MB", 8, 8, 64),
        ("2x2048GB", 2, 2, 4),
        ("6 x 2 GB, 6 x 1 GB", 12, 2, 18),
        ("256 x 32GB and 64 x 64GB", 320, 32, 12288),
        ("4 x 96 GB", 4, 96, 384),
        ("0 x 8 GB", None, None, None),
        ("None", None, None, None),
    ],
)
def test_dimms(text, count, size, total):
    parsed = parse_dimms(text)
    assert (parsed.dimm_count, parsed.dimm_gb, parsed.mem_sum_gb) == (count, size, total)


@pytest.mark.parametrize(
    ("text", "generation", "rated", "running", "kind", "ranks"),
    [
        ("16GB 2Rx8 PC4-2933Y-R, running at 2666; slots 1-6 populated", 4, 2933, 2667, "R", 2),
        ("64GB 2Rx4 PC5-38400R , running @ 4400 MHz", 5, 4800, 4400, None, 2),
        ("64 GB 2Rx4 PC5-88/64B-H, running at 8000MHz", 5, 8800, 8000, "M", 2),
        ("2 x 16GB 2Rx8 PC4-32003G2-R", 4, 3200, None, None, 2),
        ("4GB 2Rx8 PC3L-10600E ECC CL9; slots A1", 3, 1333, None, "E", 2),
        ("4GB 2Rx8 PCL3-12800E ECC", 3, 1600, None, "E", 2),
        ("PC2-5300F CL5", 2, 667, None, "F", None),
        ("SGI part # 1, 4GB, DDR2, 800, CL5, ECC", 2, 800, None, None, None),
        ("256GB 2S4Rx4 PC4-2933-Y-LA0-12-MH1", 4, 2933, None, None, 8),
        ("16 x 64GB_Maker_DDR5_5600_2Rx4", 5, 5600, None, None, 2),
        ("8 GB DDR4, unbuffered, ECC, 2666 MHz, DIMM, 1Rx8", 4, 2667, None, "U", 1),
        ("PC-3200R CL3", None, None, None, None, None),
        ("SK", None, None, None, None, None),
    ],
)
def test_module(text, generation, rated, running, kind, ranks):
    parsed = parse_module(text)
    assert (parsed.ddr_gen, parsed.mem_rated_mts, parsed.mem_running_mts) == (generation, rated, running)
    assert parsed.dimm_ranks == ranks
    assert kind is None or parsed.dimm_type == kind
    assert parsed.mem_eff_mts == (running or rated)


def test_caches_in_any_spelling():
    for text in (
        "32KB(I)+48KB(D)on chip per core",
        "32 KB (I) + 48 KB (D) per core",
        "32 KB I+48 KB D On Chip Per Core",
    ):
        cache = parse_l1(rewrite_cache_text(text))
        assert (cache.l1i_kb, cache.l1d_kb, cache.complete) == (32, 48, True)
    for text in ("2MB (I+D) per core", "2048 KB (I+D)on chip per core", "2M (I+D) per core", "2 MB per core"):
        assert parse_l2(rewrite_cache_text(text)).l2_kb_per_core == 2048
    for text in ("38.5M I+D on chip per chip", "38.5 MB L3 cache per chip", "38.5MB (I+D) on chip per chipp"):
        assert parse_l3(rewrite_cache_text(text)).l3_mb_per_chip == 38.5
    sliced = parse_l3(rewrite_cache_text("64 MB (I+D) on chip per chip (8 MB / 4 cores)"))
    assert (sliced.l3_mb_per_chip, sliced.l3_slice_mb, sliced.l3_cores_per_slice) == (64, 8, 4)
    assert parse_l3(rewrite_cache_text("None")).l3_mb_per_chip == 0


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("Microsoft Windows 2008 Server Enterprise x64 Edition R2 SP1", "Windows Server", "2008 R2"),
        ("Windows Server 2022 DatacenterS", "Windows Server", "2022"),
        ("Windows 8.1 Professional", "Windows Server", None),
        ("SUSE Linux Enterprise Server 12 SP4 Kernel 4.12.14-94.41-default", "SLES", "12.4"),
        ("Red Hat Enterprise Linux", "RHEL", None),
    ],
)
def test_operating_systems(text, name, version):
    parsed = parse_any_operating_system(text)
    assert (parsed.os_name, parsed.os_version) == (name, version)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Intel Xeon E5-2660 v2, 2.20 GHz (Intel Turbo Boost Technology up to 3.00 GHz)", "xeon e5-2660 v2"),
        ("Intel Xeon E5-2660V2", "xeon e5-2660 v2"),
        ("Intel(R) Xeon(R) Platinum 8180 CPU @2.50GHz", "xeon platinum 8180"),
        ("AMD EPYC 7742 2.25Ghz", "epyc 7742"),
        ("AMD EPYC 7601 2.20 GHz, Maker SKU [338-XXXX]", "epyc 7601"),
        ("2.6 GHz AMD Opteron 2435", "opteron 2435"),
        ("AMD Opteron 4376HE", "opteron 4376 he"),
        ("Six-Core AMD Opteron(r) Processor 8425 HE", "opteron 8425 he"),
        ("Intel Xeon 8480+ 2.0 GHz", "xeon platinum 8480+"),
        ("Intel Xeon 3.8GHz", "xeon 3.8ghz"),
        ("Intel Xeon processor 3.6 GHz", "xeon 3.6 ghz"),
        ("Intel E3-1270 v5", "xeon e3-1270 v5"),
        ("Ampere® Altra® 64-Bit Multi-Core Processor Q64-30", "altra q64-30"),
        ("(unknown)", "(unknown)"),
    ],
)
def test_one_part_however_typed(name, key):
    assert java_cpu_model_key(name) == key
    assert java_cpu_model_key(f"  {name.upper()} ") == key
