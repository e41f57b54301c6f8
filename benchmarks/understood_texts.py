"""Share of the free texts of published results that the fields of a described machine understand.

Run: python benchmarks/understood_texts.py RAW [FILE:FIELD=COLUMN ...]
RAW is results/raw of a run; further files are CSV, packed or not. Every distinct text that states
anything is read once: whole (nothing is left over), in part (something is), or ignored (nothing was found in it).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS
from perfcast.domains.servers.parsing.text_normalization import is_stated
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.inference.machine_fields import MachineFields

FIELDS = {"memory": "Memory", "storage": "Storage", "os": "Operating System", "compiler": "Compiler"}
"""Field -> column of the dumps of SPEC CPU."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("further", nargs="*", help="such as jbb2015.csv:memory=Memory Details")
    parser.add_argument("--examples", type=int, default=0, help="texts shown that are not read whole")
    options = parser.parse_args()
    dump = options.raw / "spec_cpu2017" / "cpu2017-results.csv.gz"
    sources = [(dump, field, column) for field, column in FIELDS.items()]
    for text in options.further:
        path, _, assigned = text.rpartition(":")
        field, _, column = assigned.partition("=")
        sources.append((Path(path), field, column))
    fields = MachineFields(COLUMNS, SERVER_FIELDS)
    print("| file, column | distinct | read whole | in part | ignored | rows read whole |\n|---|---|---|---|---|---|")
    for path, field, column in sources:
        counts = Counter(_column(path, column))
        kinds = {text: _kind(fields, field, text) for text in counts}
        texts, rows = Counter(kinds.values()), Counter(kinds[text] for text in counts.elements())
        share = [f"{100 * texts[kind] / len(counts):.1f} %" for kind in ("whole", "in part", "ignored")]
        print(
            f"| {path.name.partition('-')[0]}, {column} | {len(counts)} | {' | '.join(share)} "
            f"| {100 * rows['whole'] / rows.total():.2f} % |"
        )
        left = [text for text, _ in counts.most_common() if kinds[text] != "whole"]
        for text in left[: options.examples]:
            print(f"    {counts[text]} x {text!r} {kinds[text]}")


def _column(path: Path, column: str) -> Iterator[str]:
    """Yield the stated texts of a column."""
    openers = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(path.suffix, open)(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        place = [name.strip() for name in next(reader)].index(column)
        yield from (row[place] for row in reader if len(row) > place and is_stated(row[place]))


def _kind(fields: MachineFields, field: str, text: str) -> str:
    """Return how much of a text is understood."""
    cells, _, notes = fields.parse({field: text}, "a row")
    return "ignored" if not cells else "in part" if notes else "whole"


if __name__ == "__main__":
    main()
