"""Generated results by benchmark, shaped like the detail files of SPEC CPU2017, with their defects.

Each file begins with results of the generated dump of the same rows and seed, under its identifiers. Results that the
dump does not have follow.

Defects: the `t_` columns repeat the score in seconds; some rows repeat a configuration; only some sizes have a decimal
point; a few rows lack topology or turbo clock.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail import BENCHMARKS, SUITES
from perfcast.domains.servers.testing import spec_cpu2017
from perfcast.domains.servers.testing.generated_rows import CPU_MODELS, Row, make_row, read_layout
from perfcast.utils.io import write_text

_CPU_MODELS = {cpu_model.name: cpu_model for cpu_model in CPU_MODELS if cpu_model.name.startswith(("Intel ", "AMD "))}
_LAST_YEAR_AND_MONTH = "202006"
_IDENTIFIER = re.compile(r"cpu2017-(\d{6})\d{2}-(\d{5})")
_MEMORY = re.compile(r"\((\d+) x (\d+) GB .*?PC\d-(\d+)")
_OPTIONAL = ("arch", "cpus", "threads_per_core", "cores_per_socket", "sockets", "numas")
_MISSING_SHARE, _REPEATED_SHARE = 0.02, 0.05


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write input_FP_rate.csv, input_FP_speed.csv, input_Int_rate.csv and input_Int_speed.csv of `rows` rows each."""
    random = np.random.default_rng([seed, 1])
    # About a twelfth of the results are of one suite and of the processors and years of the detail files.
    drawn = spec_cpu2017.DUMP.draw_results(24 * rows + 400, np.random.default_rng(seed))
    results = [row for row in drawn if _has_detail(row)]
    for file, suite in SUITES.items():
        made: list[Row] = []
        for result in [row for row in results if row["Benchmark"] == suite.removesuffix("speed")][:rows]:
            row = _describe_machine(result, random)
            number = int(row["file"][17:22])
            if number >= rows:
                row["file"] = f"{row['file'][:17]}{99_999 - number:05d}.csv"
            if number >= rows and made and random.uniform() < _REPEATED_SHARE:
                row = {**made[int(random.integers(len(made)))], "file": row["file"]}
            elif random.uniform() < _MISSING_SHARE:
                row |= dict.fromkeys(_OPTIONAL, "")
            elif random.uniform() < _MISSING_SHARE:
                row["max_mhz"] = ""
            made.append(row | _draw_scores(row, float(result["Base Result"]), BENCHMARKS[file], random))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*read_layout("cpu2017_detail"), *_name_scores(BENCHMARKS[file])])
        writer.writerows(row.values() for row in made)
        write_text(Path(folder) / file, text.getvalue())


def _has_detail(row: Row) -> bool:
    """Return whether a result has a processor and a date of the detail files."""
    match = _IDENTIFIER.search(row["Disclosure"])
    return row["Processor"] in _CPU_MODELS and match is not None and match[1] < _LAST_YEAR_AND_MONTH


def _describe_machine(row: Row, random: np.random.Generator) -> Row:
    cpu_model, chips = _CPU_MODELS[row["Processor"]], int(row["# Chips"])
    threads, memory = int(row["# Enabled Threads Per Core"]), _MEMORY.search(row["Memory"])
    dimms, dimm_gb, rated = (int(number) for number in memory.groups()) if memory else (8, 16, 2666)
    identifier = _IDENTIFIER.search(row["Disclosure"])
    values: dict[str, Any] = {
        **cpu_model.values,
        **{"row": row, "chips": chips, "threads": threads, "dimms": dimms, "rated": rated},
        "model_name": cpu_model.name.partition(" ")[2],
        "logical": cpu_model.cores * chips * threads,
        "l3_kb": cpu_model.l3_mb * 1024.0,
        "dimm_kb": dimm_gb * 1024.0**2,
        "mem_kb": int(dimms * dimm_gb * 1024**2 * random.uniform(0.98, 0.985)),
        "storage_gb": float(random.choice([480.0, 960.0])),
        "file_system": str(random.choice(["xfs", "btrfs"])),
        "suse": row["Operating System"].startswith("SUSE"),
        "os": row["Operating System"].partition(",")[0],
        "compiler": row["Compiler"].partition(",")[0],
        "identifier": identifier[0] if identifier else "",
    }
    return make_row(read_layout("cpu2017_detail"), values)


def _name_scores(benchmarks: tuple[str, ...]) -> list[str]:
    return [name for benchmark in benchmarks for name in (benchmark, f"t_{benchmark}")]


def _draw_scores(row: Row, base: float, benchmarks: tuple[str, ...], random: np.random.Generator) -> Row:
    """Draw a score and a time for every benchmark: score = reference seconds x copies / time.

    The scores scatter around the result of the suite, which is their geometric mean.
    """
    copies = int(row["threads_or_copies"]) if row["parallel"] == "No" else 1
    scatter = random.normal(0, 0.02, size=len(benchmarks)) + np.linspace(-0.5, 0.5, len(benchmarks))
    numbers: list[float] = []
    for name, factor in zip(benchmarks, np.exp(scatter - scatter.mean()), strict=True):
        reference = (1000 + 10 * int(name[:3])) * copies
        seconds = round(float(reference / (base * factor)), 6)
        numbers += [round(reference / seconds, 6), seconds]
    return dict(zip(_name_scores(benchmarks), map(repr, numbers), strict=True))
