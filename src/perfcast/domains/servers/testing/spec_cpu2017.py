"""Generated dump of SPEC CPU2017 results, shaped like the published one, with its known defects.

The scores are made up: they follow a simple formula with noise, and describe no real machine.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing import servers
from perfcast.domains.servers.testing.servers import (
    CPU_MODELS,
    MONTHS,
    CpuModel,
    Machine,
    Row,
    copy_with_defects,
    describe_machine,
    draw_chips,
    format_caches,
    format_compiler,
    format_dump,
    format_memory,
    format_operating_system,
)
from perfcast.utils.io import atomic_path

FILE = "cpu2017-results.csv.gz"
HEADER = (
    "Benchmark", "Hardware Vendor\t", "System", "Peak Result", "Base Result", "Energy Peak Result",
    "Energy Base Result", "# Cores", "# Chips ", "# Enabled Threads Per Core", "Processor ", "Processor MHz",
    "CPU(s) Orderable", "Parallel", "Base Pointer Size", "Peak Pointer Size", "1st Level Cache", "2nd Level Cache",
    "3rd Level Cache", "Other Cache", "Memory", "Storage", "Operating System", "File System", "Compiler", "HW Avail",
    "SW Avail", "License", "Tested By", "Test Sponsor", "Test Date", "Published", "Updated ", "Disclosure",
    "Disclosures",
)  # fmt: skip
"""Names with stray blanks and tabs, as published; the last name has no field in the rows."""

VENDORS = (
    ("Dell Inc.", "PowerEdge R"), ("Lenovo Global Technology", "ThinkSystem SR"), ("Cisco Systems", "Cisco UCS C"),
    ("Hewlett Packard Enterprise", "ProLiant DL"), ("Supermicro", "SuperServer "), ("Tyrone Systems", "Tyrone DS"),
)  # fmt: skip
_SUITES = ("CINT2017", "CFP2017", "CINT2017rate", "CFP2017rate")
_FIRST, LAST = 2017 * 12 + 5, 2024 * 12 + 11
"""First and last month of publication as year x 12 + month - 1."""

_LONGEST_SALE = 20


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write cpu2017-results.csv.gz: `rows` sound results of 2017-06 to 2024-12, and every known defect a few times."""
    random = np.random.default_rng(seed)
    sound = draw_results(rows, random)
    # The gzip header has no name and no time, so equal rows give equal bytes.
    data = gzip.compress(format_dump(HEADER, sound, make_defective(sound, random), random, "\r\n"), mtime=0)
    with atomic_path(Path(folder) / FILE) as path:
        path.write_bytes(data)


def parse_month_text(text: str) -> int:
    """Parse a text of `format_month`: year x 12 + month - 1."""
    name, year = text.split("-")
    return int(year) * 12 + MONTHS.index(name)


def draw_results(rows: int, random: np.random.Generator) -> list[Row]:
    """Draw sound results as rows of text."""
    return servers.draw_results(
        rows, random, cpu_models=CPU_MODELS, suites=_SUITES, draw_machine=_draw_machine, make_result=_make_result
    )


def _draw_machine(cpu_model: CpuModel, random: np.random.Generator) -> Machine:
    vendor, stem = VENDORS[int(random.integers(len(VENDORS)))]
    month = int(np.clip(cpu_model.launch_month + random.integers(_LONGEST_SALE), _FIRST, LAST))
    chips = draw_chips(cpu_model, random)
    system = f"{stem}{int(random.integers(1, 10)) * 100 + 40}"
    return Machine(cpu_model, vendor, system, chips, month, int(random.choice([16, 32, 64])))


def compute_score(cpu_model: CpuModel, chips: int, suite: str, threads: int) -> float:
    """Return the noiseless score of a generated machine from cores, clock, generation, and bandwidth for CFP."""
    cores, ghz = cpu_model.cores * chips, (cpu_model.mhz + cpu_model.turbo_mhz) / 2000
    compute = ghz * 1.05**cpu_model.years_after_2017
    bandwidth = cpu_model.number("channels_per_chip", 8) * cpu_model.number("max_mts_1dpc", 3200) * 8e-3 * chips
    if suite.startswith("CFP"):
        compute *= np.sqrt(cpu_model.number("simd_bits", 128) / 256)
    if suite.endswith("rate"):
        throughput = 2.2 * compute * cores * (1.2 if threads > 1 else 1.0)
        return float((throughput**-2 + (1.7 * bandwidth) ** -2) ** -0.5 if suite.startswith("CFP") else throughput)
    return float(
        3.0 * compute * cores**0.08 if suite.startswith("CINT") else 2.5 * compute * (cores * bandwidth) ** 0.25
    )


def _make_result(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Row:
    cpu_model, rate = machine.cpu_model, suite.endswith("rate")
    threads = machine.threads_per_core if rate else 1
    base = compute_score(cpu_model, machine.chips, suite, threads) * float(np.exp(random.normal(0, 0.02)))
    peak = f"{base * random.uniform(1.0, 1.06):.3g}" if random.random() < 0.67 else "0"
    channels, slots = int(cpu_model.number("channels_per_chip", 8)), int(random.choice([1, 2], p=[0.7, 0.3]))
    return {
        **describe_machine(machine, format_caches(cpu_model)),
        "Benchmark": suite,
        "Peak Result": _format_score(peak),
        "Base Result": _format_score(f"{base:.3g}"),
        "Energy Peak Result": "0",
        "Energy Base Result": "600" if number % 97 == 0 else "0",
        "# Cores": str(machine.cores),
        "# Chips": str(machine.chips),
        "# Enabled Threads Per Core": str(threads),
        "CPU(s) Orderable": {1: "1 chip", 2: "1,2 chips", 4: "2,4 chips"}[machine.chips],
        "Parallel": "No" if rate else "Yes",
        "Base Pointer Size": "64-bit",
        "Peak Pointer Size": "64-bit" if peak != "0" else "Not Applicable",
        "Memory": format_memory(cpu_model, machine.chips * channels * slots, machine.dimm_gb),
        "Storage": str(random.choice(["1 x 960 GB SATA SSD", "125 GB on tmpfs", "1 x 1.2 TB SAS, 10000 RPM"])),
        "Operating System": format_operating_system(machine.month // 12),
        "File System": "xfs",
        "Compiler": format_compiler(cpu_model, machine.month // 12),
        "Disclosure": format_links(machine.month, number, number % 28 + 1),
    }


def _format_score(number: str) -> str:
    """Write a score without exponent: 1.23e+03 becomes 1230."""
    return f"{float(number):g}"


def format_links(month: int, number: int, day: int) -> str:
    """Return the links to a result published in `month` that arrived on `day` of the month before."""
    year, quarter = month // 12, month % 12 // 3 + 1
    arrival = month - 1
    page = f"cpu2017-{arrival // 12}{arrival % 12 + 1:02d}{day:02d}-{number:05d}"
    path = f"/cpu2017/results/res{year}q{quarter}/{page}"
    return " ".join(f'<A HREF="{path}.{end}">{text}</A>' for end, text in (("html", "HTML"), ("csv", "CSV")))


def make_defective(sound: list[Row], random: np.random.Generator) -> list[Row]:
    """Return copies of sound rows with one known defect each."""
    changes: list[Row] = [
        {"Base Result": "0", "Peak Result": "0"},
        {"Base Result": "0", "Processor": "redacted", "Processor MHz": "0", "# Cores": "0"},
        {"Base Result": "NC"},
        {"# Cores": "7", "# Chips": "2"},
        {"Test Date": "Jan-2098"},
        {"Published": "Mar-2025"},
        {"Memory": "512 MB (8 x 64 GB 2Rx4 PC4-3200AA-R)"},
        {"Memory": "1 TB (16 x 64 GB 2Rx4 PC4-4800AA-R)"},
        {"Memory": "768 GB (16 x 32 GB 2Rx4 PC5-4800B-R; 16 x 16 GB 1Rx8 PC5-4800B-R)"},
        {"Memory": "640 GB (16 x 32 GB 2Rx4 PC5-4800B-R) + 2 x 64 GB HBM", "Processor": "Intel Xeon Max 9468"},
        {"Operating System": "  SUSE Linux Enterprise Server 15 SP4,  Kerenl 5.14.21-150400.22-default "},
        {"Peak Result": "1"},
        {},
    ]  # fmt: skip
    number = len(sound)
    # The last change is empty: identical but for its identifier.
    copies = copy_with_defects(sound, changes, random)
    rows = [_renumber(copy, row, number + i) for i, (row, copy) in enumerate(copies)]
    return rows + _make_misnamed(sound, number + len(rows))


def _make_misnamed(sound: list[Row], number: int) -> list[Row]:
    """Return copies with another spelling of the processor, or with threads in place of cores."""
    edits = (
        ("Intel Xeon Gold 6534", {"Processor": "Intel Xeon Gold  6534"}),
        ("Intel Xeon Platinum 8468", {"Processor": "Intel Xeon platinum 8468"}),
        ("Intel Xeon E-2236", {"# Cores": "12"}),
    )
    match = [(next((row for row in sound if row["Processor"] == name), None), edit) for name, edit in edits]
    return [
        _renumber({**row, **edit, "System": row["System"] + " B"}, row, number + i)
        for i, (row, edit) in enumerate(match)
        if row is not None
    ]


def _renumber(copy: Row, row: Row, number: int) -> Row:
    """Return a copy of a row with another identifier; its links are those of the month of `row`."""
    return {**copy, "Disclosure": format_links(parse_month_text(row["Published"]), number, number % 28 + 1)}
