"""Generated dumps of published SPEC results, with their known defects. The results are made up.

Each dump has a table of its columns and texts (see `generated_rows.py`), and its defects in `defects.csv`: changes of a
sound row. A defect without a change is a row that differs from another in its identifier alone.
"""

from __future__ import annotations

import calendar
import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains import read_table
from perfcast.domains.servers.testing.generated_rows import CPU_MODELS, CpuModel, Row, Values, make_row, read_layout
from perfcast.utils.io import atomic_path

_MONTHS = tuple(calendar.month_abbr)[1:]
_LONGEST_SALE = 20
_UNUSED = ("Disclosure URL", "Disclosures")
"""Last names of the header, which have no field in the rows."""
_PAGE = re.compile(r"\w+/results/\w+/\w+-\d{8}-\d{5}")
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".csv": bytes,
    # The header has no name and no time, so equal rows give equal bytes.
    ".gz": partial(gzip.compress, mtime=0),
}


class Month(int):
    """Month as year x 12 + month - 1, written Mon-YYYY; as `{month:-3}` the one three months before."""

    def __format__(self, shift: str) -> str:
        month = int(self) + int(shift or 0)
        return f"{_MONTHS[month % 12]}-{month // 12}"


def parse_month_text(text: str) -> int:
    """Parse a text of `Month`."""
    name, year = text.split("-")
    return int(year) * 12 + _MONTHS.index(name)


@dataclass(frozen=True)
class Machine:
    """Submission: a machine with its month of publication, measured in one suite or more."""

    cpu_model: CpuModel
    vendor: str
    system: str
    chips: int
    month: Month
    dimm_gb: int

    @property
    def cores(self) -> int:
        """Cores of all processors."""
        return self.cpu_model.cores * self.chips

    @property
    def threads_per_core(self) -> int:
        """Hardware threads of a core."""
        return 2 if self.cpu_model.number("smt", 2) > 1 else 1

    @property
    def growth(self) -> float:
        """Years from the begin of 2017 to the launch of the processor."""
        return self.cpu_model.launch[0] + self.cpu_model.launch[1] / 12 - 2017

    def describe(self, dimms: int) -> dict[str, Any]:
        """Return the values of the texts about the machine with a number of modules."""
        total = dimms * self.dimm_gb
        year = self.month // 12
        return {
            **self.cpu_model.values,
            "machine": self,
            "chips": self.chips,
            "month": self.month,
            "year": year,
            "classic": year - 1999,
            "java": 10 + (year - 2018) * 2,
            "dimms": dimms,
            "dimm_gb": self.dimm_gb,
            "dimm_mb": self.dimm_gb * 1024,
            "total_gb": total,
            "capacity": f"{total // 1024} TB" if total % 1024 == 0 else f"{total} GB",
        }


@dataclass(frozen=True)
class GeneratedDump:
    """Generator of one dump, named by its `file` up to "-results".

    `months` are the first and the last of publication. `draw` returns the values of a result's texts: of a machine, a
    suite and the number of the row. A machine is measured in all `suites`, or in the last two.
    """

    file: str
    suites: Sequence[str]
    months: tuple[int, int]
    draw: Callable[[Machine, str, int, np.random.Generator], Values]

    @property
    def name(self) -> str:
        """Name of the benchmark in tables and identifiers."""
        return self.file.partition("-results")[0]

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns with stray blanks, as published."""
        return tuple(read_layout(self.name))

    def write(self, folder: Path, *, rows: int, seed: int) -> None:
        """Write the dump: `rows` sound results and every known defect, in random order, then lines that are no rows."""
        random = np.random.default_rng(seed)
        sound = self.draw_results(rows, random)
        lines = [self.format_line(row.values()) for row in [*sound, *self.make_defective(sound, random)]]
        shuffled = [lines[place] for place in random.permutation(len(lines))]
        data = b"".join([self.format_line(self.header), *shuffled, *self._make_broken(lines)])
        with atomic_path(Path(folder) / self.file) as path:
            path.write_bytes(_COMPRESS[Path(self.file).suffix](data))

    def draw_results(self, rows: int, random: np.random.Generator) -> list[Row]:
        """Draw sound results; the CPU models are drawn evenly, so that few rows already span the years and families."""
        layout = {column: texts for column, texts in read_layout(self.name).items() if column not in _UNUSED}
        models = [model for model in CPU_MODELS if model.launch_month <= self.months[1]]
        vendors = [row for row in read_table(__package__, "vendors.csv") if row["dump"] == self.name]
        made: list[Row] = []
        drawn: list[int] = []
        while len(made) < rows:
            drawn = drawn or list(random.permutation(len(models)))
            machine = self._draw_machine(
                models[drawn.pop()],
                vendors[int(random.integers(len(vendors)))],
                random,
            )
            for suite in self.suites if random.random() < 0.7 else self.suites[-2:]:
                values = {
                    "suite": suite,
                    "number": len(made),
                    **self.draw(machine, suite, len(made), random),
                }
                page = self._name_page(machine.month, len(made), len(made) % 28 + 1)
                made.append(make_row(layout, {**values, "page": page}))
        return made[:rows]

    def _draw_machine(self, cpu_model: CpuModel, vendor: Row, random: np.random.Generator) -> Machine:
        month = Month(np.clip(cpu_model.launch_month + random.integers(_LONGEST_SALE), *self.months))
        one_socket = cpu_model.number("channels_per_chip", 8) == 2 or cpu_model.name.endswith("P")
        chips = 1 if one_socket else int(random.choice([1, 2, 4], p=[0.2, 0.7, 0.1]))
        system = f"{vendor['product']}{int(random.integers(1, 10)) * 100 + 40}"
        return Machine(
            cpu_model,
            vendor["name"],
            system,
            chips,
            month,
            int(random.choice([16, 32, 64])),
        )

    def _name_page(self, month: int, number: int, day: int) -> str:
        """Return the page of a result published in `month` that arrived on `day` of the month before."""
        arrival = f"{(month - 1) // 12}{(month - 1) % 12 + 1:02d}{day:02d}"
        return f"{self.name}/results/res{month // 12}q{month % 12 // 3 + 1}/{self.name}-{arrival}-{number:05d}"

    def renumber(self, row: Row, published: str, number: int, day: int) -> Row:
        """Return the row under another identifier; its links are those of the month `published`."""
        page = self._name_page(parse_month_text(published), number, day)
        return {name: _PAGE.sub(page, text) if name == "Disclosure" else text for name, text in row.items()}

    def make_defective(self, sound: Sequence[Row], random: np.random.Generator) -> list[Row]:
        """Return copies of sound rows with one known defect each, `len(sound) // 500` times and at least once.

        A defect of a processor is that of its first row.
        """
        if not sound:
            return []
        listed = [row for row in read_table(__package__, "defects.csv") if row["dump"] == self.name]
        defects = [list(rows) for _, rows in groupby(listed, itemgetter("number"))]
        anywhere = [rows for rows in defects if not rows[0]["of_processor"]]
        count = max(1, len(sound) // 500) * len(anywhere)
        chosen = [sound[i] for i in random.integers(len(sound), size=count)]
        pairs = [(row, anywhere[place % len(anywhere)]) for place, row in enumerate(chosen)]
        first = {row["Processor"]: row for row in reversed(sound)}
        pairs += [(first.get(rows[0]["of_processor"], {}), rows) for rows in defects if rows[0]["of_processor"]]
        made = []
        for number, (row, rows) in enumerate(pairs, start=len(sound)):
            if row:
                changes = {each["column"]: each["text"].format_map(row) for each in rows if each["column"]}
                made.append(self.renumber({**row, **changes}, row["Published"], number, number % 28 + 1))
        return made

    def _make_broken(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return lines that are not rows: a repeated header, shifted fields, missing fields, and bad UTF-8."""
        if not lines:
            return []
        fields = next(csv.reader([lines[0].decode()]))
        rows = [
            self.header,
            [fields[-1], *fields[:-1]],
            fields[:20],
        ]
        return [*map(self.format_line, rows), lines[0].replace(b" GHz", b" GHz \xff\xfe")]

    def format_line(self, fields: Iterable[str]) -> bytes:
        """Format a line of CSV; an address with links in the last field is not quoted, as published."""
        *first, last = fields
        buffer = io.StringIO()
        if last.startswith("http"):
            csv.writer(buffer, lineterminator=f",{last}\r\n").writerow(first)
        else:
            csv.writer(buffer, lineterminator="\r\n").writerow([*first, last])
        return buffer.getvalue().encode()


def draw_nodes(machine: Machine, nodes: int, random: np.random.Generator) -> dict[str, Any]:
    """Draw the modules of a machine, and return the values of texts about several equal ones in one enclosure."""
    slots = machine.chips * int(random.choice([1, 2], p=[0.7, 0.3]))
    described = machine.describe(slots * int(machine.cpu_model.number("channels_per_chip", 8)))
    return {
        **described,
        "nodes": nodes,
        "rate": 4800 if described["ddr"] == 5 else 3200,
        "cores_of_nodes": machine.cores * nodes,
        "chips_of_nodes": machine.chips * nodes,
        "gb_of_nodes": described["total_gb"] * nodes,
    }
