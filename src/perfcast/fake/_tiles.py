"""A generated dump of SPEC CPU2017 results of any size, written as a stream: blocks of rows told apart by their names.

The first block is what `spec_cpu2017` generates. Every further one has its machines under other names, at other months,
with other kernels, disks and compiler builds, and results with identifiers of their own: no text but short ones repeats
from block to block more often than in the published dump.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perfcast.fake import spec_cpu2017 as spec
from perfcast.io import atomic_path

BLOCK_ROWS = 41_000
"""Sound results of a block: about as many as were published until the end of 2024."""

_PER_DAY = 100_000
_DAYS = 28
_LATER = 4
"""A block's results were published up to so many months, less one, after those of the first."""


def write_tiled(folder: Path, *, rows: int, seed: int, block_rows: int = BLOCK_ROWS) -> None:
    """Write cpu2017-results.csv.gz with `rows` sound results and every known defect a few times in each block.

    Memory is that of one block, whatever `rows` is.
    """
    random = np.random.default_rng(seed)
    sound = spec.results(min(rows, block_rows), random)
    counts: Counter[int] = Counter()
    with (
        atomic_path(Path(folder) / spec.FILE) as path,
        path.open("wb") as raw,
        # No name and no time in the gzip header, so that equal rows give equal bytes.
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as file,
    ):
        writer = csv.writer(text := io.StringIO(), lineterminator="\r\n")
        writer.writerow(spec.HEADER)
        for number, start in enumerate(range(0, rows, block_rows)):
            suffix = sound[: rows - start]
            writer.writerows(_block([*suffix, *spec.defective(suffix, random)], number, counts))
            file.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()


def _block(rows: list[spec.Row], number: int, counts: Counter[int]) -> Iterator[list[str]]:
    """Give the fields of a block's rows; `counts` holds how many results every month has so far."""
    names = spec.HEADER[:-1]
    for row in rows:
        row_text = row
        if number:
            month = min(spec.month_of(row["Published"]) + number % _LATER, spec.LAST)
            row_text = {**row, **_renamed(row, number), **_dated(row, month)}
        published = spec.month_of(row_text["Published"])
        count = counts[published]
        counts[published] += 1
        row_text = {**row_text, "Disclosure": spec.links(published, count % _PER_DAY, count // _PER_DAY % _DAYS + 1)}
        yield [row_text[name] for name in names]


def _renamed(row: spec.Row, number: int) -> spec.Row:
    return {
        "System": row["System"].replace(" (", f" G{number} (", 1),
        "Storage": f"{row['Storage']}, model S{number}",
        "Operating System": row["Operating System"].replace("-default", f".{number}-default"),
        "Compiler": row["Compiler"].replace("Build 20181018", f"Build {20181018 + number}"),
    }


def _dated(row: spec.Row, month: int) -> spec.Row:
    row_text = {
        "Published": month,
        "Updated ": month,
        "Test Date": month - 1,
        "HW Avail": month - 1,
        "SW Avail": month - 3,
    }
    sound = row["Test Date"] == spec.month_text(spec.month_of(row["Published"]) - 1)
    if not sound:  # a defect of the dates stays as it is
        return {}
    return {name: spec.month_text(value) for name, value in row_text.items()}
