"""Generated results by benchmark, shaped like the detail files of SPEC CPU2017, with their defects.

Each file begins with results of the generated dump of the same rows and seed, under its identifiers. Other results
follow until every file has `rows` rows.

Defects: the `t_` columns repeat the score in seconds; some rows repeat a configuration; only some sizes have a decimal
point; a few rows lack topology or turbo clock.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu.detail_files import BENCHMARKS
from perfcast.domains.servers.testing import spec_cpu2017
from perfcast.domains.servers.testing.servers import CPU_MODELS, Row
from perfcast.utils.io import write_text

_SUITES = {
    "input_FP_rate.csv": "CFP2017rate",
    "input_FP_speed.csv": "CFP2017",
    "input_Int_rate.csv": "CINT2017rate",
    "input_Int_speed.csv": "CINT2017",
}
_CPU_MODELS = {cpu_model.name: cpu_model for cpu_model in CPU_MODELS if cpu_model.name.startswith(("Intel ", "AMD "))}
_LAST_YEAR_AND_MONTH = "202006"
_MEMORY = re.compile(r"\((\d+) x (\d+) GB .*?PC\d-(\d+)")
_OPTIONAL = ("arch", "cpus", "threads_per_core", "cores_per_socket", "sockets", "numas")
_MISSING_SHARE, _REPEATED_SHARE = 0.02, 0.05
_BATCH = 2000


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write input_FP_rate.csv, input_FP_speed.csv, input_Int_rate.csv and input_Int_speed.csv of `rows` rows each."""
    random = np.random.default_rng([seed, 1])
    published = [row for row in spec_cpu2017.draw_results(rows, np.random.default_rng(seed)) if _is_detail_result(row)]
    others: list[Row] = []
    for file, benchmarks in BENCHMARKS.items():
        linked = [row for row in published if row["Benchmark"] == _SUITES[file]][:rows]
        further: list[Row] = []
        while len(linked) + len(further) < rows:
            further = [row for row in others if row["Benchmark"] == _SUITES[file]][: rows - len(linked)]
            if len(linked) + len(further) < rows:
                others += [row for row in spec_cpu2017.draw_results(_BATCH, random) if _is_detail_result(row)]
        frame = _describe_machines(linked, further, random)
        frame = pd.concat([frame.drop(columns="base"), _draw_scores(frame, benchmarks, _SUITES[file], random)], axis=1)
        missing = random.uniform(size=rows) < _MISSING_SHARE
        for name in _OPTIONAL:
            frame[name] = frame[name].astype("str").mask(missing, "")
        frame["max_mhz"] = frame["max_mhz"].astype("str").mask(random.uniform(size=rows) < _MISSING_SHARE, "")
        write_text(Path(folder) / file, frame.to_csv(index=False, lineterminator="\n"))


def _is_detail_result(row: Row) -> bool:
    """Return True for a result with a processor and a date of the detail files."""
    return row["Processor"] in _CPU_MODELS and _find_identifier(row)[8:14] < _LAST_YEAR_AND_MONTH


def _find_identifier(row: Row) -> str:
    match = re.search(r"cpu2017-\d{8}-\d{5}", row["Disclosure"])
    return match[0] if match else ""


def _describe_machines(linked: list[Row], further: list[Row], random: np.random.Generator) -> pd.DataFrame:
    """Return one row per machine; some of the further results repeat another configuration."""
    rows = [_describe_machine(row, random) for row in [*linked, *further]]
    first = len(linked)
    for index in range(first + 1, len(rows)):
        if random.uniform() < _REPEATED_SHARE:
            rows[index] = dict(rows[int(random.integers(first, index))])
    for number, (index, row) in enumerate(zip(range(first, len(rows)), further, strict=True)):
        rows[index]["file"] = f"{_find_identifier(row)[:17]}{90000 + number:05d}.csv"
    return pd.DataFrame(rows)


def _describe_machine(row: Row, random: np.random.Generator) -> dict[str, object]:
    cpu_model = _CPU_MODELS[row["Processor"]]
    amd, chips, rate = cpu_model.name.startswith("AMD"), int(row["# Chips"]), row["Parallel"] == "No"
    threads = int(row["# Enabled Threads Per Core"])
    memory = _MEMORY.search(row["Memory"])
    dimms, dimm_gb, rated = (int(number) for number in memory.groups()) if memory else (8, 16, 2666)
    operating_system = row["Operating System"].partition(",")[0]
    logical = cpu_model.cores * chips * threads
    return {
        "vendor": "AMD" if amd else "Intel",
        "hardware_vendor": row["Hardware Vendor"],
        "model_name": cpu_model.name.removeprefix("AMD ").removeprefix("Intel "),
        "test_sponsor": row["Test Sponsor"],
        "nominal_mhz": cpu_model.mhz,
        "max_mhz": cpu_model.turbo_mhz,
        "arch": "x86_64",
        "cpus": logical,
        "threads_per_core": threads,
        "cores_per_socket": cpu_model.cores,
        "sockets": chips,
        "numas": chips,
        "l1d_cache_kb": 32,
        "l1i_cache_kb": 32,
        "l2_cache_kb": "512" if amd else "1024.0",
        "l3_cache_kb": cpu_model.l3_mb * 1024.0,
        "mem_kb": int(dimms * dimm_gb * 1024**2 * random.uniform(0.98, 0.985)),
        "mem_channels": dimms,
        "channel_kb": dimm_gb * 1024.0**2,
        "mem_data_rate": rated,
        "storage_gb": float(random.choice([480.0, 960.0])),
        "os_name": "SLES" if operating_system.startswith("SUSE") else "RHEL",
        "os_vid": "12.4",
        "os": operating_system,
        "compiler": row["Compiler"].partition(",")[0],
        "parallel": row["Parallel"],
        "file_system": str(random.choice(["xfs", "btrfs"])),
        "threads_or_copies": logical if rate else cpu_model.cores * chips,
        "file": f"{_find_identifier(row)}.csv",
        "base": float(row["Base Result"]),
    }


def _draw_scores(
    systems: pd.DataFrame, benchmarks: tuple[str, ...], suite: str, random: np.random.Generator
) -> pd.DataFrame:
    """Draw a score and a time for every benchmark: score = reference seconds x copies / time.

    The scores scatter around the result of the suite, which is their geometric mean.
    """
    copies = systems["threads_or_copies"].astype("float64") if "rate" in suite else pd.Series(1.0, index=systems.index)
    scatter = random.normal(0, 0.02, size=(len(systems), len(benchmarks))) + np.linspace(-0.5, 0.5, len(benchmarks))
    scatter -= scatter.mean(axis=1, keepdims=True)
    columns: dict[str, pd.Series] = {}
    for index, name in enumerate(benchmarks):
        reference = 1000.0 + 10 * int(name[:3])
        score = systems["base"] * np.exp(scatter[:, index])
        seconds: pd.Series = (reference * copies / score).round(6)
        columns[name] = (reference * copies / seconds).round(6)
        columns[f"t_{name}"] = seconds
    return pd.DataFrame(columns)
