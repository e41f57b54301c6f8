"""Generated dump of SPECpower_ssj2008 results, shaped like the published one, with its known defects.

The numbers are made up: they follow a simple formula with noise, and describe no real machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perfcast.domains.servers.datasets.spec_java.power import LOADS, OPERATIONS, WATTS
from perfcast.domains.servers.testing.java_dump import format_jvm, format_link, format_module, write_results
from perfcast.domains.servers.testing.servers import Machine, Row, describe_machine, format_caches, format_month

FILE = "power_ssj2008-results.csv"
HEADER = (
    "Benchmark", "Benchmark Version", "Hardware Vendor\t", "System", "Nodes\t", "Form Factor\t", "Test Method\t",
    "Result", *OPERATIONS, *WATTS, "# Cores", "# Chips ", "# Cores Per Chip ", "# Threads Per Core", "Processor ",
    "Processor MHz", "1st Level Cache", "2nd Level Cache", "3rd Level Cache", "Memory (GB)", "Operating System",
    "Operating System Version", "File System", "DIMMS", "Memory Description\t", "JVM Vendor ", "JVM Version ",
    "Disk Drive ", "Power Supplies Installed ", "Power Supply Rating (watts)", "HW Avail", "SW Avail", "Tested By",
    "Test Sponsor", "Test Date", "Published", "Updated ", "Disclosure", "Disclosure URL", "Disclosures",
)  # fmt: skip
"""Names with stray blanks and tabs, as published; the last two names have no field in the rows."""

_MONTHS = 2017 * 12 + 5, 2023 * 12 + 4
_PLATFORMS = (
    ("Microsoft Windows Server 2019 Datacenter", "Version 1809 (OS Build 17763.1)", "NTFS"),
    ("Windows 2008 Server Enterprise x64 Edition", "R2 SP1", "NTFS"),
    ("SUSE Linux Enterprise Server 12 SP4", "Kernel 4.12.14-94.41-default", "xfs"),
)

_CHANGES: tuple[Row, ...] = (
    {"Result": "0"},
    {"Result": "NC"},
    {"Result": "7.1e+06"},
    {"# Cores": "0", "# Chips": "0"},
    {"Published": "May-0000"},
    {"Disclosure": "http://www.spec.org/"},
    {"Test Date": "Mar-2005"},
    {"3rd Level Cache": "39424 MB I+D on chip per chip"},
    {"Memory (GB)": "n/a"},
    {},
)
"""Known defects as changes of a sound row; the empty change repeats it under another identifier."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the dump: `rows` sound results of 2017-06 to 2023-05, and every known defect once."""
    write_results(Path(folder) / FILE, HEADER, _make_result, _CHANGES, _MONTHS, rows=rows, seed=seed)


def _make_result(machine: Machine, number: int, random: np.random.Generator) -> Row:
    cpu_model = machine.cpu_model
    nodes = int(random.choice([1, 2, 4], p=[0.8, 0.1, 0.1]))
    noise = np.exp(random.normal(0, 0.02, 3))
    full = 9e3 * machine.cores * cpu_model.turbo_mhz / 1000 * 1.07**cpu_model.years_after_2017 * noise[0] * nodes
    peak = (1.1 * cpu_model.tdp_w * machine.chips + 4 * machine.dimms + 20) * noise[1] * nodes
    idle = (0.2 * cpu_model.tdp_w * machine.chips + 2 * machine.dimms + 15) * noise[2] * nodes
    operations = [full * load / 100 for load in LOADS]
    watts = [idle + (peak - idle) * load / 100 for load in (*LOADS, 0)]
    (os, version, files), (vendor, jvm) = _PLATFORMS[number % len(_PLATFORMS)], format_jvm(machine.month)
    shared = nodes > 1
    return {
        **describe_machine(machine, format_caches(cpu_model)),
        "Benchmark": "power_ssj2008",
        "Benchmark Version": "1.2",
        "System": machine.system,
        "Nodes": str(nodes),
        "Form Factor": "blade" if shared else "2U",
        "Test Method": "Multi Node" if shared else "Single Node",
        "Result": f"{sum(operations) / sum(watts):.6g}",
        **{name: f"{value:.6g}" for name, value in zip(OPERATIONS, operations, strict=True)},
        **{name: f"{value:.6g}" for name, value in zip(WATTS, watts, strict=True)},
        "# Cores": str(machine.cores * nodes),
        "# Chips": str(machine.chips * nodes),
        "# Cores Per Chip": str(cpu_model.cores),
        "# Threads Per Core": str(machine.threads_per_core),
        "Processor": f"{cpu_model.name} {cpu_model.mhz / 1000:.2f} GHz" if number % 2 else cpu_model.name,
        "Memory (GB)": f"{machine.dimms * machine.dimm_gb * nodes:,}",
        "Operating System": os,
        "Operating System Version": version,
        "File System": files,
        "DIMMS": f"{machine.dimms} x {machine.dimm_gb * 1024} MB",
        "Memory Description": format_module(machine),
        "JVM Vendor": vendor,
        "JVM Version": jvm,
        "Disk Drive": "1 x 480 GB SATA SSD",
        "Power Supplies Installed": "0" if shared else "1",
        "Power Supply Rating (watts)": "0" if shared else str(round(peak * 1.6 / 100) * 100 + 100),
        "Test Date": format_month(machine.month - 1) if number % 40 else "",
        "Disclosure": format_link("power_ssj2008", machine.month, number),
    }
