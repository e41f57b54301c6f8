"""A generated dump of SPEC CPU2017 with any number of rows, for `benchmarks/scale`."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.spec_cpu2017 import DUMP, FILE
from perfcast.utils.io import atomic_path

BLOCK_ROWS = 41_000
"""Number of sound results per block, about as many as were published until the end of 2024."""

_PER_DAY, _DAYS = 100_000, 28
_LATER = {
    "System": (" (", " G{} ("),
    "Storage": (" GB ", " GB S{} "),
    "Operating System": ("-default", ".{}-default"),
    "Compiler": ("Build 2018", "Build {}2018"),
}
"""Column -> a part of its text, and what later blocks have instead."""


def write_tiled(folder: Path, *, rows: int, seed: int, block_rows: int = BLOCK_ROWS) -> None:
    """Write cpu2017-results.csv.gz with `rows` sound results, and every known defect a few times per block.

    The first block has the results of the small dump. Later blocks repeat its machines with other names, kernels,
    disks, compiler builds and identifiers, so long texts repeat no more often than in the published dump. Memory use
    is that of one block for any number of rows.
    """
    random = np.random.default_rng(seed)
    sound = DUMP.draw_results(min(rows, block_rows), random)
    counts: Counter[str] = Counter()
    with (
        atomic_path(Path(folder) / FILE) as path,
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as file,
    ):
        file.write(DUMP.format_line(DUMP.header))
        for number, start in enumerate(range(0, rows, block_rows)):
            block = sound[: rows - start]
            for row in [*block, *DUMP.make_defective(block, random)]:
                later = {name: row[name].replace(old, new.format(number), 1) for name, (old, new) in _LATER.items()}
                count = counts[row["Published"]]
                counts[row["Published"]] += 1
                day = count // _PER_DAY % _DAYS + 1
                renamed = DUMP.renumber({**row, **later} if number else row, row["Published"], count % _PER_DAY, day)
                file.write(DUMP.format_line(renamed.values()))
