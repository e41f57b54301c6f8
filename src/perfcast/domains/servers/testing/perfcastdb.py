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
from pathlib import Path

import numpy as np

from perfcast.utils.io import atomic_path, write_text

Stated = dict[str, str]
_TIME = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")

_HEADER = """
kubernetes.pod_id|RESULT.@timestamp|RESULT.kubernetes.namespace_name|RESULT.cluster-name|RESULT.kubernetes.host
RESULT.WorkloadName|RESULT.WorkloadVersion|RESULT.WorkloadPreset|IterationID|RESULT.IterationIndex|RESULT.TestName
RESULT.Value|META.@timestamp|META.metadata.cscope.qdf0|META.metadata.cscope.qdf1|META.metadata.cscope.stepping
META.metadata.cscope.MEMINFO.FREQUENCY|META.metadata.cscope.MEMINFO.SIZE|META.metadata.cscope.MEMINFO.PART_NO
SVR.CPU.CPU Model|SVR.CPU.Microarchitecture|SVR.Power.TDP|SVR.System.Microcode|SVR.CPU.Base Frequency
SVR.CPU.Maximum Frequency|SVR.CPU.All-core Maximum Frequency|SVR.CPU.Thread(s) per Core|SVR.CPU.Core(s) per Socket
SVR.CPU.Socket(s)|SVR.CPU.NUMA Node(s)|SVR.CPU.L1d Cache|SVR.CPU.L1i Cache|SVR.CPU.L2 Cache|SVR.CPU.L3 Cache
SVR.CPU.Prefetchers|SVR.CPU.Turbo|SVR.ISA|SVR.Accelerators|SVR.Power.Power & Perf Policy|SVR.Power.Frequency Governer
SVR.Power.Frequency (MHz)|SVR.Power.Max C-State|SVR.Memory.Installed|SVR.Memory.Buffers|SVR.Memory.Cached
SVR.Memory.MemAvailable|SVR.CPU.Stepping|SVR.CPU.Family|SVR.Memory.Huge Pages Size
SVR.Memory.Automatic NUMA Balancing|SVR.System.OS|SVR.System.Product Name|SVR.CPU.CPU(s)|SVR.CPU.On-line CPU(s) List
SVR.Memory.MemTotal|SVR.Memory.MemFree|SVR.Drive(s)|BIOS.kubernetes.pod_id|BIOS.type|BIOS.L1 Next Page Prefetcher
BIOS.AMP Prefetch|BIOS.Memory Encryption (TME)|BIOS.Total Memory Encryption Multi-Tenant(TME-MT)
BIOS.SW Guard Extensions (SGX)|BIOS.SGX PRM Size|BIOS.Volatile Memory Mode|BIOS.SNC|BIOS.Fan PWM Offset
Measure.DIMM.Population|Measure.DIMM.Num|Measure.DIMM.Total|Measure.DIMM.PartNo|Measure.DIMM.Freq
"""
HEADER = [name for line in _HEADER.strip().splitlines() for name in line.split("|")]

_TESTS: dict[str, tuple[str, ...]] = {
    "SPECrate2017_fp_base": ("503.bwaves_r", "508.namd_r", "519.lbm_r", "SPECrate2017_fp_base"),
    "SPECrate2017_int_base": ("500.perlbench_r", "502.gcc_r", "505.mcf_r", "SPECrate2017_int_base"),
    "Memory Latency Checker Bandwidth": ("LLC Bandwidth (MB/s)", "Peak Bandwidth Remote (Reverse) (MB/s)"),
    "Memory Latency Checker latency": (
        "Local socket local cluster L1 hit latency (ns)",
        "Remote socket memory latency Random (ns)",
    ),
    "Stream": ("Copy Bandwidth (NTW) (MB/s)", "Triad Bandwidth (NTW) (MB/s)"),
    "HPCG": ("Score(GFLOPS)",),
}
_TEST_PART_ONLY = {"Memory Latency Checker Bandwidth": ("Peak Bandwidth Socket 0 100R (MB/s)",)}
_DIMMS = {16: "MTC10F1084S1RC48BA1", 32: "MTC20F2085S1RC48BA1", 48: "M321R6GA0BB0-CQKZZ", 64: "HMCG94MEBRA000N"}
_SLOTS, _CHANNELS, _STACKS = 32, 16, 8
_TITLES = (
    *("QDF/SSPEC", "Physical Core", "Functional Core", "Speed", "All Core Turbo Freq Rate", "Max Turbo Frequency Rate"),
    *("DDR5 FREQ", "Functional Core", "Cache", "Cache Off Axis Ind", "Thermal Design Power", "Speed"),
    *("AVX Deterministic P1 Freq Rte", "AVX2 All Core Turbo Freq Rate", "AVX2 Sngl Core Turbo Freq Rate"),
    *("AVX3 Deterministic P1 Freq Rte", "AVX3 All Core Turbo Freq Rate", "AVX3 Sngl Core Turbo Freq Rate"),
    *("TMUL Deterministic P1 Freq Rte", "TMUL All Core Turbo Freq Rate", "TMUL Sngl Core Turbo Freq Rate"),
    *("CLM P0 Max Freq", "AVX FMA Execution Unit Count", "Max UPI Port Cnt", "MAXIMUM PEG LANE COUNT"),
)


@dataclass(frozen=True)
class _CpuSample:
    """Generated processor sample. Units: GHz, MB."""

    code: str
    model: str
    cores: int
    base: float
    all_core: float
    l3_mb: float
    hbm: bool
    whole_system_caches: bool


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write train_data.csv, test_data.csv, SPR_QDF_INFO.xlsx and characteristic_description.md.

    There are about `rows` long rows, and at least one run of every suite in either file.
    """
    random = np.random.default_rng(seed)
    cpu_models = [_draw_sample(number, random) for number in range(7)]
    folder = Path(folder)
    for name, offered in {"train": cpu_models[:4], "test": cpu_models[3:]}.items():
        lines: list[Stated] = []
        while len(lines) < rows / 2 or not lines:
            for suite, tests in _TESTS.items():
                extra = _TEST_PART_ONLY.get(suite, ()) if name == "test" else ()
                cpu_model = offered[int(random.integers(len(offered)))]
                lines += _draw_run(cpu_model, suite, (*tests, *extra), random)
        if name == "train":
            run = lines[0]["kubernetes.pod_id"]
            copied = [line for line in lines if line["kubernetes.pod_id"] == run]
            lines += [{**line, "kubernetes.pod_id": f"{run}33"} for line in copied]
        _write_csv(folder / f"{name}_data.csv", lines)
    sheet = [_make_sample_row(cpu_model) for cpu_model in cpu_models]
    blank: list[list[str]] = [[]] * 20
    write_sheet(folder / "SPR_QDF_INFO.xlsx", [["", "SPEED States"], list(_TITLES), *sheet, *blank, *sheet, *blank])
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
    return _CpuSample(
        f"QZ{number:02d}", name, cores, base, round(base + 0.8, 1), 97.5, hbm, whole_system_caches=number == 5
    )


def _draw_run(cpu_model: _CpuSample, suite: str, tests: tuple[str, ...], random: np.random.Generator) -> list[Stated]:
    run = "-".join(random.bytes(size).hex() for size in (4, 2, 2, 2, 6))
    stated = {
        **_describe_software(suite, run),
        **_describe_processor(cpu_model),
        **_describe_memory(cpu_model, suite, random),
    }
    speed = cpu_model.cores * cpu_model.all_core
    lines = []
    level = {test: speed * float(random.uniform(0.8, 1.2)) for test in tests}
    for iteration in range(int(random.integers(2, 4))):
        for test in tests:
            value = 1e4 / level[test] if test.endswith("(ns)") else level[test]
            changing = {
                "IterationID": f"{run}_{iteration}",
                "RESULT.IterationIndex": str(iteration),
                "RESULT.TestName": test,
                "RESULT.Value": repr(round(value * float(np.exp(random.normal(0, 0.003))), 4)),
            }
            lines.append({**stated, **changing})
    return lines


def _describe_software(suite: str, run: str) -> Stated:
    firmware = {}
    if suite == "Stream":
        firmware = {
            "BIOS.kubernetes.pod_id": run,
            "BIOS.type": "knobvalue",
            "BIOS.SNC": "0xf",
            "BIOS.AMP Prefetch": "0x0",
        }
    return {
        "kubernetes.pod_id": run,
        "RESULT.@timestamp": "01:02.3",
        "RESULT.kubernetes.namespace_name": "generated-namespace",
        "RESULT.cluster-name": "generated-cluster",
        "RESULT.kubernetes.host": "generated-host",
        "RESULT.WorkloadName": suite,
        "RESULT.WorkloadVersion": "v1.0_0.1",
        "RESULT.WorkloadPreset": "AVX2" if suite == "HPCG" else "gcc8.1 O2 | SSE",
        "SVR.System.OS": "Red Hat Enterprise Linux 8.2 (Ootpa)",
        "SVR.System.Product Name": "Generated",
        "SVR.System.Microcode": f"0x{run[:8]}",
        "SVR.Power.Power & Perf Policy": "Performance",
        "SVR.Power.Frequency Governer": "performance",
        "SVR.Power.Max C-State": "9",
        **firmware,
    }


def _describe_processor(cpu_model: _CpuSample) -> Stated:
    caches = {"L1d": "48", "L1i": "32", "L2": "2048", "L3": f"{cpu_model.l3_mb * 1024:g}"}
    if cpu_model.whole_system_caches:
        total = 2 * cpu_model.cores / 1024
        caches = {
            "L1d": f"{48 * total:g}",
            "L1i": f"{32 * total:g}",
            "L2": f"{2048 * total:g}",
            "L3": f"{2 * cpu_model.l3_mb:g}",
        }
    return {
        "META.metadata.cscope.qdf0": cpu_model.code,
        "META.metadata.cscope.qdf1": cpu_model.code,
        "META.metadata.cscope.stepping": "B3" if cpu_model.hbm else "E5",
        "SVR.CPU.CPU Model": cpu_model.model,
        "SVR.CPU.Microarchitecture": "SPR",
        "SVR.Power.TDP": "350",
        "SVR.CPU.Base Frequency": f"{cpu_model.base:g}",
        "SVR.CPU.Maximum Frequency": "3.8",
        "SVR.CPU.All-core Maximum Frequency": f"{cpu_model.all_core:g}",
        "SVR.CPU.Thread(s) per Core": "2",
        "SVR.CPU.Core(s) per Socket": str(cpu_model.cores),
        "SVR.CPU.Socket(s)": "2",
        "SVR.CPU.CPU(s)": str(4 * cpu_model.cores),
        "SVR.CPU.NUMA Node(s)": "8" if cpu_model.hbm else "2",
        "SVR.CPU.Prefetchers": "DCU HW  L2 HW",
        "SVR.CPU.Turbo": "Enabled",
        "SVR.ISA": "AVX:Yes AVX2:Yes AVX512F:Yes AVX512_VNNI:Yes AMX-TILE:Yes",
        "SVR.Accelerators": "QAT:0 DSA:8 IAX:8",
        "SVR.Power.Frequency (MHz)": "2000",
        **{f"SVR.CPU.{level} Cache": size for level, size in caches.items()},
    }


def _describe_memory(cpu_model: _CpuSample, suite: str, random: np.random.Generator) -> Stated:
    size = 0 if cpu_model.hbm and suite == "HPCG" else int(random.choice(list(_DIMMS)))
    modules = _CHANNELS if size else 0
    groups, slots, numbers = [], ["0"] * _SLOTS, ["NO DIMM"] * _SLOTS
    if size:
        groups.append(f"{modules * size}GB ({modules}x{size}GB DDR5 4800 MT/s [4800 MT/s])")
        slots = [str(size), "0"] * _CHANNELS
        numbers = [_DIMMS[size], "NO DIMM"] * _CHANNELS
    if cpu_model.hbm:
        groups.append(f"{_STACKS * 16}GB ({_STACKS}x16GB HBM2 3200 MT/s [3200 MT/s])")
        slots, numbers = [*slots, *["16"] * _STACKS], [*numbers, *[""] * _STACKS]
    stacks = _STACKS if cpu_model.hbm else 0
    total = modules * size + stacks * 16
    return {
        "SVR.Memory.Installed": "; ".join(groups),
        "SVR.Memory.MemTotal": str(int(total * 1024**2 * 0.98)),
        "SVR.Memory.Automatic NUMA Balancing": "Disabled",
        "META.metadata.cscope.MEMINFO.FREQUENCY": "505.032704",
        "META.metadata.cscope.MEMINFO.SIZE": "|".join(slots),
        "META.metadata.cscope.MEMINFO.PART_NO": "|".join(numbers),
        "Measure.DIMM.Num": str(modules + stacks),
        "Measure.DIMM.Total": str(total),
        "Measure.DIMM.PartNo": ("|" if cpu_model.hbm and size else "") + _DIMMS.get(size, ""),
        "Measure.DIMM.Freq": "4800" if size else "3200",
    }


def _make_sample_row(cpu_model: _CpuSample) -> list[str]:
    clocks = [f"{cpu_model.all_core - step / 10:g}" for step in range(9)]
    return [
        *(
            cpu_model.code,
            "60",
            str(cpu_model.cores),
            f"{cpu_model.base:g} GHz",
            f"{cpu_model.all_core:g}",
            "3.8 GHz",
            "4800",
        ),
        *(str(cpu_model.cores), f"{cpu_model.l3_mb:g} MB", "ENABLED", "350 W", f"{cpu_model.base:g} GHz"),
        *clocks,
        *("2.5", "2", "4", "80"),
    ]


def _write_csv(path: Path, lines: list[Stated]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADER, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_text(path, text.getvalue())
