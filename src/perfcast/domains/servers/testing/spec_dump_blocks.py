"""Generated dump of SPEC CPU2017 results of any size, streamed in blocks of rows.

The first block equals the dump of `spec_cpu2017`. Later blocks repeat its machines with other names, months, kernels,
disks, compiler builds and identifiers. So long texts repeat no more often than in the published dump.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing import spec_cpu2017 as spec
from perfcast.domains.servers.testing.servers import Row, format_month, list_fields
from perfcast.utils.io import atomic_path

BLOCK_ROWS = 41_000
"""Number of sound results per block, about as many as were published until the end of 2024."""

_PER_DAY = 100_000
_DAYS = 28
_LATER = 4
"""Number of different shifts of a block, in months after the first block: 0 to one less."""


def write_tiled(folder: Path, *, rows: int, seed: int, block_rows: int = BLOCK_ROWS) -> None:
    """Write cpu2017-results.csv.gz with `rows` sound results, and every known defect a few times per block.

    Memory use is that of one block for any number of rows.
    """
    random = np.random.default_rng(seed)
    sound = spec.draw_results(min(rows, block_rows), random)
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
            block = sound[: rows - start]
            writer.writerows(_iterate_block([*block, *spec.make_defective(block, random)], number, counts))
            file.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()


def _iterate_block(rows: list[Row], number: int, counts: Counter[int]) -> Iterator[list[str]]:
    """Yield the fields of the rows of a block; `counts` holds the results of each month so far."""
    names = spec.HEADER[:-1]
    for row in rows:
        shifted = row
        if number:
            month = min(spec.parse_month_text(row["Published"]) + number % _LATER, spec.LAST)
            shifted = {**row, **_rename_machine(row, number), **_set_dates(row, month)}
        published = spec.parse_month_text(shifted["Published"])
        count = counts[published]
        counts[published] += 1
        shifted = {
            **shifted,
            "Disclosure": spec.format_links(published, count % _PER_DAY, count // _PER_DAY % _DAYS + 1),
        }
        yield list_fields(shifted, names)


def _rename_machine(row: Row, number: int) -> Row:
    return {
        "System": row["System"].replace(" (", f" G{number} (", 1),
        "Storage": f"{row['Storage']}, model S{number}",
        "Operating System": row["Operating System"].replace("-default", f".{number}-default"),
        "Compiler": row["Compiler"].replace("Build 20181018", f"Build {20181018 + number}"),
    }


def _set_dates(row: Row, month: int) -> Row:
    dates = {"Published": month, "Updated": month, "Test Date": month - 1, "HW Avail": month - 1, "SW Avail": month - 3}
    sound = row["Test Date"] == format_month(spec.parse_month_text(row["Published"]) - 1)
    if not sound:  # a defective date stays
        return {}
    return {name: format_month(value) for name, value in dates.items()}
