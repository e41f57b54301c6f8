"""Machines, texts and defects that the generated dumps of the Java benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.servers import (
    CPU_MODELS,
    Machine,
    Row,
    draw_chips,
    draw_cpu_models,
    format_csv_line,
    format_month,
    list_fields,
)
from perfcast.utils.io import atomic_path

VENDORS = (
    ("Dell Inc.", "PowerEdge R"), ("Lenovo Global Technology", "ThinkSystem SR"), ("Acer Incorporated", "Altos R"),
    ("Hewlett-Packard Company", "ProLiant DL"), ("Super Micro Computer, Inc", "SuperServer "),
)  # fmt: skip
_LONGEST_SALE = 20


def draw_machines(count: int, first: int, last: int, random: np.random.Generator) -> list[Machine]:
    """Draw machines published from month `first` to `last`; every CPU model is drawn once before any repeats."""
    drawn: list[Machine] = []
    cpu_models = draw_cpu_models(CPU_MODELS, random)
    while len(drawn) < count:
        cpu_model = next(cpu_models)
        vendor, stem = VENDORS[int(random.integers(len(VENDORS)))]
        month = cpu_model.launch_month + int(random.integers(_LONGEST_SALE))
        if cpu_model.launch_month > last:
            continue
        chips = draw_chips(cpu_model, random)
        dimms = chips * int(cpu_model.number("channels_per_chip", 8)) * int(random.choice([1, 2], p=[0.7, 0.3]))
        system, month = f"{stem}{int(random.integers(1, 10)) * 100 + 40}", int(np.clip(month, first, last))
        drawn.append(Machine(cpu_model, vendor, system, chips, month, int(random.choice([16, 32, 64])), dimms))
    return drawn


def format_module(machine: Machine) -> str:
    """Return the description of a module in one of the spellings that occur."""
    ddr = int(machine.cpu_model.number("ddr_gen", 4))
    rate = 4800 if ddr == 5 else 3200
    spelling = machine.month % 3
    if spelling == 0:
        return f"{machine.dimm_gb} GB 2Rx4 PC{ddr}-{rate}AA-R; slots 1-{machine.dimms} populated"
    if spelling == 1:
        return f"{machine.dimms} x {machine.dimm_gb}GB-Maker-DDR{ddr}-{rate}-2Rx8"
    return f"{machine.dimm_gb}GB 2Rx4 DDR{ddr} RDIMM {rate} MHz, running at {rate - 267 if ddr == 4 else 4400} MHz."


def format_jvm(month: int) -> tuple[str, str]:
    """Return the texts of vendor and version of a Java virtual machine of that month."""
    year = month // 12
    if year < 2019:
        return ("Oracle Corporation", f"Java HotSpot Server VM (build 25.{year}-b1, mixed mode), version 1.8.0_152")
    if month % 7 == 0:
        return "IBM Corporation", "IBM J9 VM 8.0.5.16 (IBM JDK8 SR5 FP16)"
    release = 10 + (year - 2018) * 2
    return "Oracle", f"Oracle Java SE {release}.0.2 Java HotSpot(TM) 64-Bit Server VM, version {release}.0.2"


def format_link(benchmark: str, month: int, number: int) -> str:
    """Return the last field of a row: an address directly followed by links, as published."""
    arrival = month - 1
    page = f"{benchmark}-{arrival // 12}{arrival % 12 + 1:02d}{number % 28 + 1:02d}-{number:05d}"
    path = f"/{benchmark}/results/res{month // 12}q{month % 12 // 3 + 1}/{page}.html"
    return f'http://www.spec.org{path}"<A HREF=""{path}"">HTML</A>"'


def make_defective(sound: Sequence[Row], changes: Sequence[Row], benchmark: str, month: int) -> list[Row]:
    """Return copies of sound rows, published in `month`, with one known defect each.

    An empty change keeps the month: that copy is identical but for its identifier.
    """
    rows = []
    for number, change in enumerate(changes[: len(sound)]):
        copy = {**sound[number], "Disclosure": format_link(benchmark, month, len(sound) + number)}
        rows.append({**copy, **({"Published": format_month(month)} if change else {}), **change})
    return rows


def write_results(
    path: Path,
    header: Sequence[str],
    make_result: Callable[[Machine, int, np.random.Generator], Row],
    changes: Sequence[Row],
    months: tuple[int, int],
    *,
    rows: int,
    seed: int,
) -> None:
    """Write a dump of `rows` sound results published in `months`, first to last, and every known defect once.

    The name of the benchmark is that of the file up to "-results".
    """
    random = np.random.default_rng(seed)
    sound = [make_result(machine, i, random) for i, machine in enumerate(draw_machines(rows, *months, random))]
    benchmark = path.name.partition("-results")[0]
    write_dump(path, header, [*sound, *make_defective(sound, changes, benchmark, months[0] + 20)])


def write_dump(path: Path, header: Sequence[str], rows: Sequence[Row], broken: bool = True) -> None:
    """Write a header whose last two names have no field, the rows, and then lines that are not rows."""
    fields = header[:-2]
    lines = [_format_line(header), *(_format_line(list_fields(row, fields[:-1]), row[fields[-1]]) for row in rows)]
    if broken and rows:
        lines += [
            _format_line(header),
            _format_line(list_fields(rows[0], fields[:9])),
            lines[1].replace(b",", b",\xff\xfe", 1),
        ]
    with atomic_path(path) as temporary:
        temporary.write_bytes(b"".join(lines))


def _format_line(fields: Sequence[str], last: str | None = None) -> bytes:
    """Format a line whose last field is not quoted."""
    end = "\r\n" if last is None else f",{last}\r\n"
    return format_csv_line(fields, "") + end.encode()
