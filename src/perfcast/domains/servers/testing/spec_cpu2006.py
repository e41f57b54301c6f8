"""Generated dump of SPEC CPU2006 results, shaped like the published one, with its known defects.

The scores are made up: they follow a simple formula with noise, and describe no real machine.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.older_servers import (
    OLDER_CPU_MODELS,
    find_bus_rate,
    format_characteristics,
    format_older_caches,
    format_older_compiler,
    format_older_memory,
    format_older_operating_system,
)
from perfcast.domains.servers.testing.servers import (
    CpuModel,
    Machine,
    Row,
    copy_with_defects,
    describe_machine,
    draw_results,
    format_dump,
    format_month,
)
from perfcast.domains.servers.testing.spec_cpu2017 import compute_score
from perfcast.utils.io import atomic_path

FILE = "cpu2006-results.csv.xz"
HEADER = (
    "Benchmark", "Hardware Vendor", "System", "Result", "Baseline", "Cores", "Chips", "Cores Per Chip",
    "Threads Per Core", "Processor", "Processor MHz", "Processor Characteristics", "CPU(s) Orderable",
    "Auto Parallelization", "Base Pointer Size", "Peak Pointer Size", "1st Level Cache", "2nd Level Cache",
    "3rd Level Cache", "Other Cache", "Memory", "Operating System", "File System", "Compiler", "HW Avail", "SW Avail",
    "License", "Tested By", "Test Sponsor", "Test Date", "Published", "Updated",
)  # fmt: skip
_VENDORS = (
    ("Dell Inc.", "PowerEdge R"), ("IBM Corporation", "IBM System x"), ("Fujitsu Siemens Computers", "PRIMERGY RX"),
    ("Hewlett-Packard Company", "ProLiant DL"), ("Sun Microsystems", "Sun Fire X"), ("Bull SAS", "NovaScale R"),
)  # fmt: skip
_SUITES = ("CINT2006", "CFP2006", "CINT2006rate", "CFP2006rate")
_FIRST, _LAST = 2006 * 12 + 8, 2014 * 12 + 1
"""First and last month of publication as year x 12 + month - 1."""

_LONGEST_SALE = 30


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write cpu2006-results.csv.xz: `rows` sound results of 2006-09 to 2014-02, and every known defect a few times."""
    random = np.random.default_rng([seed, 2006])
    sound = draw_results(
        rows, random, cpu_models=OLDER_CPU_MODELS, suites=_SUITES, draw_machine=_draw_machine, make_result=_make_result
    )
    data = format_dump(HEADER, sound, _make_defective(sound, random), random, "\n")
    with atomic_path(Path(folder) / FILE) as path:
        path.write_bytes(lzma.compress(data, preset=1))


def _draw_machine(cpu_model: CpuModel, random: np.random.Generator) -> Machine:
    vendor, stem = _VENDORS[int(random.integers(len(_VENDORS)))]
    month = int(np.clip(cpu_model.launch_month + random.integers(_LONGEST_SALE), _FIRST, _LAST))
    one_socket = " E3-" in cpu_model.name or " i3-" in cpu_model.name or "X3470" in cpu_model.name
    chips = 1 if one_socket else int(random.choice([1, 2, 4], p=[0.2, 0.65, 0.15]))
    system, wording = f"{stem}{int(random.integers(1, 10)) * 100 + 20}", int(random.integers(100))
    return Machine(cpu_model, vendor, system, chips, month, int(random.choice([2, 4, 8])), wording=wording)


def _make_result(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Row:
    cpu_model, rate, year = machine.cpu_model, suite.endswith("rate"), machine.month // 12
    smt = rate and cpu_model.number("smt", 1) > 1
    base = 3 * compute_score(cpu_model, machine.chips, suite, 2 if smt else 1) * float(np.exp(random.normal(0, 0.02)))
    peak = f"{base * random.uniform(1.0, 1.08):.3g}" if random.random() < 0.95 else "0"
    channels = int(cpu_model.number("channels_per_chip", 4 if find_bus_rate(cpu_model) else 2))
    chips = {1: "1 chip", 2: "1,2 chips", 4: "2,4 chip"}[machine.chips]
    return {
        **describe_machine(machine, format_older_caches(cpu_model)),
        "Benchmark": suite,
        "Result": f"{float(peak):g}",
        "Baseline": f"{float(f'{base:.3g}'):g}",
        "Cores": str(machine.cores),
        "Chips": str(machine.chips),
        "Cores Per Chip": str(cpu_model.cores),
        "Threads Per Core": "2" if smt else "1",
        "Processor Characteristics": format_characteristics(cpu_model),
        "CPU(s) Orderable": "4,8 cores" if cpu_model.facts["isa"] == "power" else chips,
        "Auto Parallelization": "No" if rate or machine.wording % 2 else "Yes",
        "Base Pointer Size": "32-bit" if suite.startswith("CINT") else "64-bit",
        "Peak Pointer Size": "32/64-bit" if peak != "0" else "Not Applicable",
        "Memory": format_older_memory(cpu_model, machine.chips * channels, machine.dimm_gb, machine.wording),
        "Operating System": format_older_operating_system(year, machine.wording),
        "File System": "ext3" if year < 2011 else "ext4",
        "Compiler": format_older_compiler(cpu_model, year, suite.startswith("CFP")),
        "SW Avail": format_month(machine.month - 4),
        "Updated": "Mar-2012",
    }


def _make_defective(sound: list[Row], random: np.random.Generator) -> list[Row]:
    """Return copies of sound rows with one known defect each."""
    changes: list[Row] = [
        {"Baseline": "0", "Result": "0"},
        {"Baseline": "NC"},
        {"Cores": "9", "Chips": "1", "Cores Per Chip": "4"},
        {"Cores": "1", "Chips": "1", "System": "one core of several"},
        {"Test Date": "Jan-2098"},
        {"Test Date": "Jan-2001"},
        {"Memory": "16 GB (16 x 1048MB ECC FB-DIMM DDR2-667 CL5-5-5)"},
        {"Memory": "  12 GB (3x4 GB Somebody, DDR3 1066,  non-ECC) "},
        {"Processor Characteristics": "Intel Turbo Boost Technology disabled"},
        {"CPU(s) Orderable": "1 to 4 CMUs; each CMU contains 2 or 4 chips"},
        {"Operating System": "  Solaris 10 5/09 with patches 119963-13,, 120753-06"},
        {"Other Cache": "60 GB I+D off chip per system"},
        {"Result": "0.01"},
        {},
    ]  # fmt: skip
    # The last change is empty: a repeated row.
    return [copy for _, copy in copy_with_defects(sound, changes, random)]
