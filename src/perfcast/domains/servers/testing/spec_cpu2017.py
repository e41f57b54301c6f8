"""Generated dump of SPEC CPU2017 results; the scores follow a simple formula with noise."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.generated_dumps import GeneratedDump, Machine
from perfcast.domains.servers.testing.generated_rows import Values
from perfcast.utils.io import atomic_path

BLOCK_ROWS = 41_000
"""Number of sound results per block, about as many as were published until the end of 2024."""

_PER_DAY, _DAYS = 100_000, 28
_STORAGE = ("1 x 960 GB SATA SSD", "125 GB on tmpfs", "1 x 1.2 TB SAS, 10000 RPM")
_LATER = {
    "System": (" (", " G{} ("),
    "Storage": (" GB ", " GB S{} "),
    "Operating System": ("-default", ".{}-default"),
    "Compiler": ("Build 2018", "Build {}2018"),
}
"""Column -> a part of its text, and what later blocks have instead."""


def _compute_score(machine: Machine, suite: str, threads: int) -> float:
    """Return the noiseless score from cores, clock, generation, and bandwidth for CFP."""
    cpu_model, cores = machine.cpu_model, machine.cores
    compute = (cpu_model.mhz + cpu_model.turbo_mhz) / 2000 * 1.05**machine.growth
    bandwidth = cpu_model.number("channels_per_chip", 8) * cpu_model.number("max_mts_1dpc", 3200) * 8e-3 * machine.chips
    if suite.startswith("CFP"):
        compute *= np.sqrt(cpu_model.number("simd_bits", 128) / 256)
    if suite.endswith("rate"):
        throughput = 2.2 * compute * cores * (1.2 if threads > 1 else 1.0)
        return float((throughput**-2 + (1.7 * bandwidth) ** -2) ** -0.5 if suite.startswith("CFP") else throughput)
    return float(
        3.0 * compute * cores**0.08 if suite.startswith("CINT") else 2.5 * compute * (cores * bandwidth) ** 0.25
    )


def draw_scores(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Values:
    """Draw base and peak score, modules and storage."""
    threads = machine.threads_per_core if suite.endswith("rate") else 1
    base = _compute_score(machine, suite, threads) * float(np.exp(random.normal(0, 0.02)))
    peak = base * random.uniform(1.0, 1.06) if random.random() < 0.67 else 0.0
    slots = machine.chips * int(random.choice([1, 2], p=[0.7, 0.3]))
    return {
        **machine.describe(slots * int(machine.cpu_model.number("channels_per_chip", 8))),
        "rate": suite.endswith("rate"),
        "threads": threads,
        "base": float(f"{base:.3g}"),
        "peak": float(f"{peak:.3g}"),
        "storage": str(random.choice(_STORAGE)),
    }


_SUITES = ("CINT2017", "CFP2017", "CINT2017rate", "CFP2017rate")
DUMP = GeneratedDump("cpu2017-results.csv.gz", _SUITES, (2017 * 12 + 5, 2024 * 12 + 11), draw_scores)
FILE, write = DUMP.file, DUMP.write


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
