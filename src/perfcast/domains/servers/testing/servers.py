"""Generated processors that the generated dumps and the generated catalog share."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfcast.domains.servers.processors.cpu_names import cpu_model_key
from perfcast.domains.servers.processors.families import look_up_facts

Row = dict[str, str]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def format_month(month: int) -> str:
    """Format year x 12 + month - 1 as the dumps do: Mon-YYYY."""
    return f"{MONTHS[month % 12]}-{month // 12}"


def format_csv_line(fields: Sequence[str], end: str = "\r\n") -> bytes:
    """Format fields as one line of CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=end).writerow(fields)
    return buffer.getvalue().encode()


def list_fields(row: Row, header: Sequence[str]) -> list[str]:
    """Return the fields of a row in the order of a header, whose names have stray blanks; absent ones are empty."""
    return [row.get(" ".join(name.split()), "") for name in header]


def format_dump(
    header: Sequence[str], sound: Sequence[Row], defective: Sequence[Row], random: np.random.Generator, end: str
) -> bytes:
    """Return the lines of a dump: rows in random order, then lines that are no rows; Disclosures has no fields."""
    names = [name for name in header if name != "Disclosures"]
    texts = [format_csv_line(list_fields(row, names), end) for row in [*sound, *defective]]
    order = random.permutation(len(texts))
    broken = make_broken_lines(texts, header, end)
    return b"".join([format_csv_line(header, end), *(texts[i] for i in order), *broken])


def make_broken_lines(lines: Sequence[bytes], header: Sequence[str], end: str) -> list[bytes]:
    """Return lines that are not rows: a repeated header, shifted fields, missing fields, and bad UTF-8."""
    if not lines:
        return []
    fields = next(csv.reader([lines[0].decode()]))
    rows = [header, [fields[-1], *fields[:-1]], fields[:20]]
    return [*(format_csv_line(row, end) for row in rows), lines[0].replace(b" GHz", b" GHz \xff\xfe")]


def describe_machine(machine: Machine, caches: Sequence[str]) -> Row:
    """Return the fields of a machine and of its publication that most dumps share."""
    cpu_model, published, before = machine.cpu_model, format_month(machine.month), format_month(machine.month - 1)
    return {
        "Hardware Vendor": machine.vendor,
        "System": f"{machine.system} ({cpu_model.name}, {cpu_model.mhz / 1000:.2f} GHz)",
        "Processor": cpu_model.name,
        "Processor MHz": str(cpu_model.mhz),
        **dict(zip(("1st Level Cache", "2nd Level Cache", "3rd Level Cache"), caches, strict=True)),
        "Other Cache": "None",
        "HW Avail": before,
        "SW Avail": format_month(machine.month - 3),
        "License": "55",
        "Tested By": machine.vendor,
        "Test Sponsor": machine.vendor,
        "Test Date": before,
        "Published": published,
        "Updated": published,
    }


def format_caches(cpu_model: CpuModel) -> tuple[str, str, str]:
    """Return the three cache columns of a CPU model."""
    l2 = (
        "2 MB"
        if cpu_model.facts["process_node"] == "Intel 7"
        else "512 KB"
        if cpu_model.facts["cpu_vendor"] == "AMD"
        else "1 MB"
    )
    l3 = f"{cpu_model.l3_mb} MB I+D on chip per chip"
    if cpu_model.facts["cpu_vendor"] == "AMD":
        l3 += f", {cpu_model.l3_mb // 2} MB shared / {cpu_model.cores // 2} cores"
    if cpu_model.facts["family"] == "Sierra Forest":
        # As published, the size of a module of four cores is stated per core.
        l2 = "4 MB"
    return "32 KB I + 32 KB D on chip per core", f"{l2} I+D on chip per core", l3


def format_memory(cpu_model: CpuModel, dimms: int, dimm_gb: int) -> str:
    """Return the memory column: the fastest DIMMs of the CPU model's generation, running at the CPU model's limit."""
    ddr, limit = int(cpu_model.number("ddr_gen", 4)), int(cpu_model.number("max_mts_1dpc", 3200))
    rated, letters = (3200, "AA") if ddr == 4 else (max(limit, 4800), "B")
    total = dimms * dimm_gb
    capacity = f"{total // 1024} TB" if total % 1024 == 0 else f"{total} GB"
    running = f", running at {limit}" if limit < rated else ""
    return f"{capacity} ({dimms} x {dimm_gb} GB 2Rx4 PC{ddr}-{rated}{letters}-R{running})"


def format_operating_system(year: int) -> str:
    """Return an operating system of the year."""
    if year < 2020:
        return "SUSE Linux Enterprise Server 12 SP4 (x86_64), Kernel 4.12.14-94.41-default"
    if year < 2022:
        return "Red Hat Enterprise Linux 8.3 (Ootpa), 4.18.0-240.el8.x86_64"
    return "SUSE Linux Enterprise Server 15 SP4 (x86_64), Kernel 5.14.21-150400.22-default"


def format_compiler(cpu_model: CpuModel, year: int) -> str:
    """Return the compiler column: AOCC for AMD, Intel classic and later oneAPI for the others."""
    if cpu_model.facts["cpu_vendor"] == "AMD":
        return f"C/C++/Fortran: Version {min(5, max(1, year - 2018))}.0.0 of AOCC"
    if year < 2021:
        return (
            f"C/C++: Version {year - 1999}.0.1.144 of Intel C/C++, Compiler Build 20181018 for Linux;, "
            f"Fortran: Version {year - 1999}.0.1.144 of Intel Fortran, Compiler Build 20181018 for Linux"
        )
    return (
        f"C/C++: Version {year}.0 of Intel oneAPI DPC++/C++, Compiler for Linux;, "
        f"Fortran: Version {year}.0 of Intel Fortran Compiler, for Linux;"
    )


@dataclass(frozen=True)
class CpuModel:
    """Generated processor. Units: clock MHz; launch is (year, month)."""

    name: str
    cores: int
    mhz: int
    launch: tuple[int, int]

    @cached_property
    def key(self) -> str:
        """Join key of the CPU model."""
        return cpu_model_key(self.name)

    @cached_property
    def facts(self) -> dict[str, float | str | None]:
        """Facts of the CPU model from the project's family tables."""
        return look_up_facts(self.key)

    def number(self, fact: str, default: float) -> float:
        """Return a numerical fact, or the default where the tables lack it."""
        value = self.facts[fact]
        return default if value is None else float(value)

    @property
    def launch_month(self) -> int:
        """Launch as year x 12 + month - 1."""
        return self.launch[0] * 12 + self.launch[1] - 1

    @property
    def years_after_2017(self) -> float:
        """Launch in years after the begin of 2017."""
        return self.launch[0] + self.launch[1] / 12 - 2017

    @property
    def turbo_mhz(self) -> int:
        """Highest clock in MHz."""
        return self.mhz + 1200

    @property
    def tdp_w(self) -> int:
        """Power in W, which grows with cores and clock."""
        return round((40 + 1.1 * self.cores * (self.mhz / 2000) ** 2) / 5) * 5

    @property
    def l3_mb(self) -> int:
        """Last-level cache of the chip in MB."""
        per_core = {"Milan-X": 24, "EPYC 4004": 4}.get(str(self.facts["family"]), 2)
        return self.cores * per_core


@dataclass(frozen=True)
class Machine:
    """Submission: a machine with its month of publication, measured in one suite or more.

    Units: `month` is year x 12 + month - 1. `dimms` is 0 where a result draws the number of modules itself; `wording`
    selects the wording of texts.
    """

    cpu_model: CpuModel
    vendor: str
    system: str
    chips: int
    month: int
    dimm_gb: int
    dimms: int = 0
    wording: int = 0

    @property
    def cores(self) -> int:
        """Cores of all processors."""
        return self.cpu_model.cores * self.chips

    @property
    def threads_per_core(self) -> int:
        """Hardware threads of a core."""
        return 2 if self.cpu_model.number("smt", 2) > 1 else 1


def parse_cpu_models(text: str) -> tuple[CpuModel, ...]:
    """Parse lines of a launch and processors: 'YYYY-MM name:cores:MHz, name:cores:MHz'."""
    models = []
    for line in text.strip().splitlines():
        date, _, items = line.partition(" ")
        year, month = date.split("-")
        for name, cores, mhz in (item.strip().split(":") for item in items.split(",")):
            models.append(CpuModel(name, int(cores), int(mhz), (int(year), int(month))))
    return tuple(models)


def draw_cpu_models(cpu_models: Sequence[CpuModel], random: np.random.Generator) -> Iterator[CpuModel]:
    """Yield CPU models in random order without end, every CPU model once before any repeats."""
    while True:
        yield from (cpu_models[index] for index in reversed(random.permutation(len(cpu_models))))


def draw_results(
    rows: int,
    random: np.random.Generator,
    *,
    cpu_models: Sequence[CpuModel],
    suites: Sequence[str],
    draw_machine: Callable[[CpuModel, np.random.Generator], Machine],
    make_result: Callable[[Machine, str, int, np.random.Generator], Row],
) -> list[Row]:
    """Draw sound results of machines that are measured in all suites, or in the last two.

    The CPU models are drawn evenly, so that few rows already span the years and families.
    """
    made: list[Row] = []
    drawn = draw_cpu_models(cpu_models, random)
    while len(made) < rows:
        machine = draw_machine(next(drawn), random)
        measured = suites if random.random() < 0.7 else suites[2:]
        made += [make_result(machine, suite, len(made) + i, random) for i, suite in enumerate(measured)]
    return made[:rows]


def copy_with_defects(
    sound: Sequence[Row], changes: Sequence[Row], random: np.random.Generator
) -> list[tuple[Row, Row]]:
    """Return pairs of a sound row and its copy with one defect, each `len(sound) // 500` times and at least once."""
    times = max(1, len(sound) // 500)
    chosen = [sound[i] for i in random.integers(len(sound), size=times * len(changes))] if sound else []
    return [(row, {**row, **changes[i % len(changes)]}) for i, row in enumerate(chosen)]


def draw_chips(cpu_model: CpuModel, random: np.random.Generator) -> int:
    """Draw the number of processors of a machine: 1, 2 or 4, and 1 where the CPU model is for one socket."""
    one_socket = cpu_model.number("channels_per_chip", 8) == 2 or cpu_model.name.endswith("P")
    return 1 if one_socket else int(random.choice([1, 2, 4], p=[0.2, 0.7, 0.1]))


CPU_MODELS = parse_cpu_models("""
2017-06 Intel Xeon E3-1230 v6:4:3500, SPARC64 XII:12:4250
2017-09 Intel Xeon Silver 4110:8:2100, Intel Xeon Gold 5118:12:2300, Intel Xeon Gold 6130:16:2100
2017-09 Intel Xeon Gold 6148:20:2400, Intel Xeon Gold 6142M:16:2600, Intel Xeon Platinum 8180:28:2500
2017-11 AMD EPYC 7281:16:2100, AMD EPYC 7601:32:2200
2018-10 Intel Xeon E-2124:4:3300, Intel Xeon E-2186G:6:3800
2019-04 Intel Xeon Silver 4210:10:2200, Intel Xeon Gold 5218:16:2300, Intel Xeon Gold 6230:20:2100
2019-04 Intel Xeon Gold 6248:20:2500, Intel Xeon Platinum 8260:24:2400, Intel Xeon Platinum 8280:28:2700
2019-08 AMD EPYC 7302:16:3000, AMD EPYC 7452:32:2350, AMD EPYC 7742:64:2250, AMD EPYC 7F52:16:3500
2019-09 Intel Xeon E-2236:6:3400, Intel Xeon E-2288G:8:3700
2020-09 Intel Xeon Platinum 8380H:28:2900, Ampere Altra Q80-30:80:3000
2021-03 AMD EPYC 7313:16:3000, AMD EPYC 7543P:32:2800, AMD EPYC 7763:64:2450
2021-04 Intel Xeon Silver 4314:16:2400, Intel Xeon Gold 6330:28:2000, Intel Xeon Platinum 8380:40:2300
2021-09 Intel Xeon E-2388G:8:3200
2022-03 AMD EPYC 7573X:32:2800, Quantum Core X1:48:2600
2022-11 AMD EPYC 9124:16:3000, AMD EPYC 9354:32:3250, AMD EPYC 9654:96:2400
2023-01 Intel Xeon Silver 4410Y:12:2000, Intel Xeon Gold 6430:32:2100, Intel Xeon Gold 6448Y:32:2100
2023-01 Intel Xeon Platinum 8468:48:2100, Intel Xeon Platinum 8480+:56:2000, Intel Xeon Max 9468:48:2100
2023-06 AMD EPYC 9754:128:2250, AMD EPYC 8324P:32:2650
2023-12 Intel Xeon Gold 6534:8:3900, Intel Xeon Gold 6530:32:2100, Intel Xeon Platinum 8592+:64:1900
2024-05 AMD EPYC 4564P:16:4500, Intel Xeon 6780E:144:2200
2024-09 AMD EPYC 9755:128:2700, AMD EPYC 9965:192:2250, Intel Xeon 6980P:128:2000
""")
"""CPU models in order of launch, with names of real families, so that naming rules and family tables apply."""
