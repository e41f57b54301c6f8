"""Generated processors of 2006 to 2013, and their texts in the wordings of the dump of those years."""

from __future__ import annotations

from perfcast.domains.servers.testing.servers import CpuModel, parse_cpu_models

MODULES = ("Interlagos", "Valencia", "Abu Dhabi")
"""Families in which pairs of cores share caches."""

FRONT_SIDE_BUS = ("NetBurst MP", "Woodcrest", "Clovertown", "Tigerton", "Harpertown", "Dunnington")


OLDER_CPU_MODELS = parse_cpu_models("""
2006-09 Intel Xeon 5160:2:3000, AMD Opteron 2220:2:2800, Intel Xeon 7140M:2:3400, IBM POWER5+:2:2200
2007-01 Intel Xeon X5355:4:2666, Intel Xeon E5310:4:1600, Dual-Core Intel Itanium 2 9040:2:1600
2007-09 Intel Xeon E7340:4:2400, AMD Opteron 2350:4:2000, IBM POWER6:2:4700, Sun UltraSPARC T2:8:1400
2007-11 Intel Xeon E5450:4:3000, Intel Xeon X5460:4:3166, Intel Xeon X5260:2:3333
2008-09 Intel Xeon X7460:6:2667, AMD Opteron 2384:4:2700, AMD Opteron 8384:4:2700
2009-04 Intel Xeon X5570:4:2933, Intel Xeon E5520:4:2267, Intel Xeon E5502:2:1867
2009-06 AMD Opteron 2435:6:2600, AMD Opteron 8435:6:2600, Intel Xeon X3470:4:2933
2010-03 Intel Xeon X5670:6:2933, Intel Xeon E5620:4:2400, Intel Xeon X7560:8:2267, AMD Opteron 6174:12:2200
2011-04 Intel Xeon E3-1270:4:3400, Intel Xeon E7-4870:10:2400, Intel Core i3-2120:2:3300
2011-11 AMD Opteron 6276:16:2300, AMD Opteron 4284:8:3000, Fujitsu Vector V9:16:2100
2012-03 Intel Xeon E5-2690:8:2900, Intel Xeon E5-2620:6:2000, Intel Xeon E5-4650:8:2700
2012-06 Intel Xeon E5-2420:6:1900, Intel Xeon E3-1270 v2:4:3500, AMD Opteron 6380:16:2500
2013-06 Intel Xeon E3-1270 v3:4:3500, Intel Core i3-4330:2:3500
2013-09 Intel Xeon E5-2697 v2:12:2700, Intel Xeon E5-2620 v2:6:2100, IBM POWER7+:8:4100
""")
"""CPU models in order of launch, one unknown; names of real families, so naming rules and family tables apply."""


def find_bus_rate(cpu_model: CpuModel) -> int | None:
    """Return the rate of the front-side bus in MT/s, None for a CPU model with memory channels."""
    if cpu_model.facts["family"] not in FRONT_SIDE_BUS:
        return None
    return 800 if cpu_model.facts["family"] == "NetBurst MP" else 1333 if cpu_model.mhz > 2500 else 1066


def format_characteristics(cpu_model: CpuModel) -> str:
    """Return the text of the processor's bus or turbo clock, "" where neither is stated."""
    bus = find_bus_rate(cpu_model)
    if bus:
        return (
            f"{cpu_model.mhz / 1000:.2f} GHz, {bus} MHz system bus" if cpu_model.cores > 2 else f"{bus}MHz system bus"
        )
    if cpu_model.facts["cpu_vendor"] == "Intel" and cpu_model.facts["isa"] == "x86" and cpu_model.launch >= (2009, 1):
        return f"Intel Turbo Boost Technology up to {cpu_model.turbo_mhz / 1000:.2f} GHz"
    return ""


def format_older_caches(cpu_model: CpuModel) -> tuple[str, str, str]:
    """Return the three cache columns of a CPU model."""
    family, level1 = cpu_model.facts["family"], "32 KB I + 32 KB D on chip per core"
    if family == "NetBurst MP":
        return "12 K micro-ops I + 16 KB D on chip per core", "1 MB I+D on chip per core", "16 MB I+D on chip per chip"
    if family in FRONT_SIDE_BUS:
        whole = f"{3 * cpu_model.cores} MB I+D on chip per chip"
        level2 = whole if cpu_model.cores == 2 else f"{whole}, 6 MB shared / 2 cores"
        return level1, level2, "16 MB I+D on chip per chip" if family == "Dunnington" else "None"
    if family in MODULES:
        level1 = f"{32 * cpu_model.cores} KB I on chip per chip, 64 KB I shared / 2 cores; 16 KB D on chip per core"
        return level1, f"{cpu_model.cores} MB I+D on chip per chip, 2 MB shared / 2 cores", "16 MB I+D on chip per chip"
    if family == "Montecito":
        return "16 KB I + 16 KB D on chip per core", "1 MB I + 256 KB D on chip per core", "12 MB I+D on chip per core"
    if cpu_model.facts["cpu_vendor"] == "AMD":
        level3 = "None" if family == "Santa Rosa" else "6 MB I+D on chip per chip"
        return "64 KB I + 64 KB D on chip per core", "512 KB I+D on chip per core", level3
    return level1, "256 KB I+D on chip per core", f"{cpu_model.l3_mb} MB I+D on chip per chip"


def format_older_memory(cpu_model: CpuModel, dimms: int, dimm_gb: int, wording: int) -> str:
    """Return the memory column in one of several wordings: DDR2 before 2009, then DDR3."""
    total = dimms * dimm_gb
    if cpu_model.launch < (2009, 1):
        return (
            f"{total} GB ({dimms} x {dimm_gb} GB DDR2-5300F ECC)",
            f"{total} GB ({dimms}x{dimm_gb} GB PC2-5300F, 2 rank, CL5-5-5, ECC)",
            f"{total} GB ({dimms}x{dimm_gb} GB) FB-DIMM PC2-5300F ECC CL5",
            f"{total} GB ({dimms} x {dimm_gb * 1024}MB ECC FB-DIMM DDR2-667 CL5-5-5)",
        )[wording % 4]
    running = ", running at 1066 MHz" if wording % 3 == 0 else ""
    return (
        f"{total} GB ({dimms} x {dimm_gb} GB 2Rx4 PC3-10600R-9, ECC{running})",
        f"{total} GB ({dimms} x {dimm_gb} GB PC3-10600R CL9, 2 Rank{running})",
        f"{total} GB ({dimms} x {dimm_gb} GB DDR3-1333 DR RDIMM)",
        f"{total} GB ({dimms}x{dimm_gb}GB DIMMs)",
    )[wording % 3 if wording % 50 else 3]


def format_older_operating_system(year: int, wording: int) -> str:
    """Return an operating system of the year."""
    if wording % 9 == 0:
        return "Windows Vista Ultimate w/ SP1 (64-bit)" if year < 2010 else "Windows 7 Ultimate (64-bit)"
    if year < 2009:
        return "SUSE Linux Enterprise Server 10 (x86_64) SP1,, Kernel 2.6.16.46-0.12-smp"
    if year < 2012:
        return "SuSE Linux Enterprise Server 11 (x86_64), Kernel, 2.6.27.19-5-default"
    return "Red Hat Enterprise Linux Server release 6.2, (Santiago), 2.6.32-220.el6.x86_64"


def format_older_compiler(cpu_model: CpuModel, year: int, fortran: bool) -> str:
    """Return the compiler column in the wording of the year."""
    if cpu_model.facts["isa"] == "power":
        return "IBM XL C/C++ for AIX, V11.1" if year > 2009 else "XL C/C++ Enterprise Edition V9.0 for AIX"
    if cpu_model.facts["isa"] == "sparc":
        return "Sun Studio 12 Update 1" if year > 2008 else "Sun Studio 12"
    if cpu_model.facts["cpu_vendor"] == "AMD":
        return "x86 Open64 4.2.4 Compiler Suite (from AMD)" if year > 2009 else (
            "PGI Server Complete Version 7.2, PathScale Compiler Suite Version 3.2"
        )  # fmt: skip
    if year < 2008:
        return (
            "Intel C++ Compiler for IA32 version 9.1, Build no 20060816, Microsoft Visual Studio .Net 2003 (libraries)"
        )
    if year < 2011:
        return "Intel C++ and Fortran Compiler 11.0 for Linux, Build 20090131 Package ID: l_cproc_p_11.0.080"
    tail = ";, Fortran: Version 12.1.0.225 of Intel Fortran, Studio XE for Linux" if fortran else ""
    return f"C/C++: Version 12.1.0.225 of Intel C++ Studio XE, for Linux{tail}"
