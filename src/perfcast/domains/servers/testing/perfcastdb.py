"""Generated benchmark runs, shaped like the public sample of PerfCastDB, with its defects.

Defects of the runs: a run copied under a longer name, caches in MB over the whole system, part numbers with a leading
bar, a run without DIMMs, suite means among the tests, a test in the test file alone, and firmware settings on few runs.
Defects of the sheet: a header on the second row, repeated samples, and blank rows.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains import read_table
from perfcast.domains.servers.testing.generated_rows import Row, make_row, read_layout
from perfcast.utils.io import atomic_path, write_text

_TIME = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")
_DIMMS = {
    16: "MTC10F1084S1RC48BA1",
    32: "MTC20F2085S1RC48BA1",
    48: "M321R6GA0BB0-CQKZZ",
    64: "HMCG94MEBRA000N",
}
_SLOTS = 32
_CHANNELS = 16
_STACKS = 8
HEADER = list(read_layout("perfcastdb_runs"))


@dataclass(frozen=True)
class _CpuSample:
    """Generated processor sample. Units: GHz, MB."""

    code: str
    model: str
    cores: int
    base: float
    all_core: float
    hbm: bool
    whole_system_caches: bool
    l3_mb: float = 97.5


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write train_data.csv, test_data.csv, SPR_QDF_INFO.xlsx and characteristic_description.md.

    There are about `rows` long rows, and at least one run of every suite in either file.
    """
    random = np.random.default_rng(seed)
    samples = [_draw_sample(number, random) for number in range(7)]
    listed = read_table(__package__, "perfcastdb_tests.csv")
    folder = Path(folder)
    for name, offered in {"train": samples[:4], "test": samples[3:]}.items():
        lines: list[Row] = []
        while len(lines) < rows / 2 or not lines:
            for suite, tests in groupby(listed, itemgetter("suite")):
                named = [row["test"] for row in tests if row["part"] in ("", name)]
                lines += _draw_run(offered[int(random.integers(len(offered)))], suite, named, random)
        if name == "train":
            run = lines[0]["kubernetes.pod_id"]
            copied = [line for line in lines if line["kubernetes.pod_id"] == run]
            lines += [{**line, "kubernetes.pod_id": f"{run}33"} for line in copied]
        text = io.StringIO()
        writer = csv.DictWriter(text, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        write_text(folder / f"{name}_data.csv", text.getvalue())
    columns = read_table(__package__, "perfcastdb_samples.csv")
    sheet = [_make_sample_row(sample, [row["text"] for row in columns]) for sample in samples]
    blank: list[list[str]] = [[]] * 20
    titles = [row["column"] for row in columns]
    write_sheet(
        folder / "SPR_QDF_INFO.xlsx",
        [
            ["", "SPEED States"],
            titles,
            *sheet,
            *blank,
            *sheet,
            *blank,
        ],
    )
    write_text(folder / "characteristic_description.md", "# Generated characteristics\n")


def write_sheet(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write rows of texts as the only sheet of a workbook; equal rows give equal bytes, an empty row stays empty."""
    import openpyxl

    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet()
    for row in rows:
        sheet.append(row)
    workbook.save(content := io.BytesIO())
    with atomic_path(path) as temporary, zipfile.ZipFile(content) as saved, zipfile.ZipFile(temporary, "w") as archive:
        for name in saved.namelist():
            # openpyxl writes the current time into the properties; ZipInfo without a time gives 1980-01-01.
            data = _TIME.sub(rb"\g<1>1980-01-01T00:00:00Z", saved.read(name))
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED)


def _draw_sample(number: int, random: np.random.Generator) -> _CpuSample:
    hbm = number % 3 == 2
    name = f"Intel (R) Xeon (R) CPU Max 94{number}0" if hbm else f"Intel(R) Xeon(R) Platinum 84{number}0Z"
    cores = int(random.choice([40, 48, 56]))
    base = round(float(random.uniform(1.8, 2.7)), 1)
    return _CpuSample(f"QZ{number:02d}", name, cores, base, round(base + 0.8, 1), hbm, number == 5)


def _make_sample_row(sample: _CpuSample, texts: Sequence[str]) -> list[str]:
    clocks = [sample.all_core - step / 10 for step in range(9)]
    return [text.format(sample=sample, clocks=clocks) for text in texts]


def _draw_run(
    sample: _CpuSample,
    suite: str,
    tests: Sequence[str],
    random: np.random.Generator,
) -> list[Row]:
    run = "-".join(random.bytes(size).hex() for size in (4, 2, 2, 2, 6))
    share = 2 * sample.cores / 1024 if sample.whole_system_caches else 1.0
    values: dict[str, Any] = {
        "suite": suite,
        "run": run,
        "sample": sample,
        "hbm": sample.hbm,
        "cpus": 4 * sample.cores,
        "l1d": 48 * share,
        "l1i": 32 * share,
        "l2": 2048 * share,
        "l3": sample.l3_mb * (2 if sample.whole_system_caches else 1024),
        **_describe_memory(sample, suite, random),
    }
    layout = read_layout("perfcastdb_runs")
    speed = sample.cores * sample.all_core
    level = {test: speed * float(random.uniform(0.8, 1.2)) for test in tests}
    lines = []
    for iteration in range(int(random.integers(2, 4))):
        for test in tests:
            mean = 1e4 / level[test] if test.endswith("(ns)") else level[test]
            value = round(mean * float(np.exp(random.normal(0, 0.003))), 4)
            lines.append(
                make_row(
                    layout,
                    {
                        **values,
                        "iteration": iteration,
                        "test": test,
                        "value": value,
                    },
                )
            )
    return lines


def _describe_memory(sample: _CpuSample, suite: str, random: np.random.Generator) -> dict[str, Any]:
    size = 0 if sample.hbm and suite == "HPCG" else int(random.choice(list(_DIMMS)))
    modules = _CHANNELS if size else 0
    stacks = _STACKS if sample.hbm else 0
    groups = []
    slots = ["0"] * _SLOTS
    numbers = ["NO DIMM"] * _SLOTS
    if size:
        groups.append(f"{modules * size}GB ({modules}x{size}GB DDR5 4800 MT/s [4800 MT/s])")
        slots = [str(size), "0"] * _CHANNELS
        numbers = [_DIMMS[size], "NO DIMM"] * _CHANNELS
    if stacks:
        groups.append(f"{stacks * 16}GB ({stacks}x16GB HBM2 3200 MT/s [3200 MT/s])")
    total = modules * size + stacks * 16
    return {
        "size": size,
        "part": _DIMMS.get(size, ""),
        "devices": modules + stacks,
        "total_gb": total,
        "installed": "; ".join(groups),
        "slots": "|".join([*slots, *["16"] * stacks]),
        "numbers": "|".join([*numbers, *[""] * stacks]),
        "mem_total_kb": int(total * 1024**2 * 0.98),
    }
