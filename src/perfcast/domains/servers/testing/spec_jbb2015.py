"""Generated dump of SPECjbb2015 results, shaped like the published one, with its known defects.

The numbers are made up: they follow a simple formula with noise, and describe no real machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.java_dump import format_jvm, format_link, format_module, write_results
from perfcast.domains.servers.testing.servers import Machine, Row, describe_machine, format_caches, format_month

FILE = "jbb2015-results.csv"
HEADER = (
    "Benchmark", "Company", "System", "Max-jOPS\t", "Critical-jOPS\t", "JVM", "JVM Vendor  ", "# of nodes", "# cores",
    "# chips", "# cores per chip", "# of threads per core ", "Total # of threads ", "Processor", "CPU Speed",
    "CPU Characteristics ", "Primary Cache", "Secondary Cache", "Tertiary Cache", "Memory (GB)", "DIMMS ",
    "Memory Details", "Disk \t", "File System \t", "Operating System", "Form factor\t", "Hardware Availability",
    "OS Availability", "JVM Availability", "SW Availability", "License", "Tested By", "Test Sponsor", "Test Date",
    "Published", "Updated ", "Disclosure", "Disclosure URL", "Disclosures",
)  # fmt: skip
"""Names with stray blanks and tabs, as published; the last two names have no field in the rows."""

_KINDS = ("JBB2015MULTI", "JBB2015COMP", "JBB2015DIST")
_MONTHS = 2017 * 12 + 5, 2025 * 12 + 5
_SYSTEMS = (
    ("Windows Server 2019 Datacenter", "NTFS"),
    ("Red Hat Enterprise Linux release 8.2 (Ootpa), 4.18.0-193.el8.x86_64", "XFS"),
    ("SUSE Linux Enterprise Server 15 SP4", "btrfs"),
)

_CHANGES: tuple[Row, ...] = (
    {"Max-jOPS": "0"},
    {"Critical-jOPS": "9e+09"},
    {"Max-jOPS": "NC"},
    {"Benchmark": "JBB2013"},
    {"# cores": "7", "# chips": "2"},
    {"Memory (GB)": "1024(Virtual Memory: 2048)"},
    {"DIMMS": "None"},
    {"Secondary Cache": "24 MB (I+D) per core"},
    {},
)
"""Known defects as changes of a sound row; the empty change repeats it under another identifier."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the dump: `rows` sound results of 2017-06 to 2025-06, and every known defect once."""
    write_results(Path(folder) / FILE, HEADER, _make_result, _CHANGES, _MONTHS, rows=rows, seed=seed)


def _make_result(machine: Machine, number: int, random: np.random.Generator) -> Row:
    cpu_model, kind = machine.cpu_model, str(random.choice(_KINDS, p=[0.5, 0.3, 0.2]))
    nodes = 4 if kind == "JBB2015DIST" and random.random() < 0.3 else 1
    noise = np.exp(random.normal(0, 0.03, 2))
    base = 900 * machine.cores**0.9 * cpu_model.turbo_mhz / 1000 * 1.06**cpu_model.years_after_2017 * nodes
    highest = base * (0.8 if kind == "JBB2015COMP" else 1.0) * noise[0]
    critical = highest * min(0.98, 0.6 * float(noise[1]))
    (os, files), (vendor, jvm) = _SYSTEMS[number % len(_SYSTEMS)], format_jvm(machine.month)
    l1, l2, l3 = caches = format_caches(cpu_model)
    threads = machine.threads_per_core
    return {
        **describe_machine(machine, caches),
        "Benchmark": kind,
        "Company": machine.vendor,
        "System": machine.system,
        "Max-jOPS": f"{highest:.6g}",
        "Critical-jOPS": f"{critical:.6g}",
        "JVM": jvm,
        "JVM Vendor": vendor,
        "# of nodes": str(nodes),
        "# cores": str(machine.cores * nodes),
        "# chips": str(machine.chips * nodes),
        "# cores per chip": str(cpu_model.cores),
        # On some rows threads per core holds the total.
        "# of threads per core": str(threads if number % 9 else threads * machine.cores * nodes),
        "Total # of threads": str(threads * machine.cores * nodes),
        "Processor": cpu_model.name.replace("Intel Xeon", "Intel(R) Xeon(R)") if number % 2 else cpu_model.name,
        "CPU Speed": str(cpu_model.mhz),
        "Primary Cache": l1.replace(" KB I + ", "KB(I)+").replace(" KB D ", "KB(D)"),
        "Secondary Cache": l2.replace("I+D on chip", "(I+D)"),
        "Tertiary Cache": l3,
        "Memory (GB)": f"{machine.dimms * machine.dimm_gb * nodes}{'GB' if number % 5 == 0 else ''}",
        "DIMMS": f"{machine.dimms * nodes} x {machine.dimm_gb}GB",
        "Memory Details": format_module(machine),
        "Disk": "1 x 960GB SATA SSD",
        "File System": files,
        "Operating System": os,
        "Form factor": "2U Rack",
        "Hardware Availability": format_month(machine.month - 1),
        "SW Availability": format_month(machine.month - 2),
        "Test Date": "",
        "Updated": format_month(machine.month - 1),
        "Disclosure": format_link("jbb2015", machine.month, number),
    }
