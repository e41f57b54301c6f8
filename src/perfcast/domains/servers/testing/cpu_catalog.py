"""Generated processor catalog: four tables shaped like the published ones, including their pitfalls."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.older_servers import FRONT_SIDE_BUS, OLDER_CPU_MODELS
from perfcast.domains.servers.testing.servers import CPU_MODELS, CpuModel
from perfcast.utils.io import atomic_path

_ARK = (
    "CpuId", "CpuName", "AVX512FusedMultiplyAddUnits", "BornOnDate", "Cache", "ClockSpeed", "ClockSpeedMax",
    "CodeNameText", "CoreCount", "Lithography", "MaxTDP", "MemoryTypes", "NumMemoryChannels", "PCIExpressRevision",
    "ScalableSockets", "TurboBoostTech2MaxFreq", "UltraPathInterconnectLinks",
)  # fmt: skip
_AMD = (
    "", "Model", "Family", "Launch Date", "# of CPU Cores", "# of Threads", "Base Clock", "Max. Boost Clock ¹ ²",
    "All Core Boost Speed", "L3 Cache", "Socket Count", "PCI Express® Version", "Default TDP",
    "AMD Configurable TDP (cTDP)", "Memory Channels",
)  # fmt: skip
_XEON = (
    "Product", "Status", "Release Date", "Code Name", "Cores", "Threads", "Lithography(nm)", "Max. Turbo Freq.(GHz)",
    "Base Freq.(GHz)", "TDP(W)", "Cache(MB)",
)  # fmt: skip
_BOAVIZTA = (
    "name",
    "code_name",
    "release_date",
    "frequency",
    "tdp",
    "cores",
    "threads",
    "process_size",
    "manufacturer",
)
_LAST_LISTED = (2023, 6)
"""Last launch in the tables; as with the real catalog, later CPU models are unlisted."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the four tables with every listed CPU model, and `rows` further CPU models without results."""
    random = np.random.default_rng(seed)
    extra = [CpuModel(f"Intel Xeon Z-{1000 + i}", int(random.integers(2, 64)), 2000, (2020, 1)) for i in range(rows)]
    listed = [cpu_model for cpu_model in CPU_MODELS if cpu_model.launch <= _LAST_LISTED]
    intel = [cpu_model for cpu_model in [*listed, *extra] if cpu_model.name.startswith("Intel Xeon")]
    # As in the real tables, the Xeon list has a CPU model that ARK lacks.
    in_ark = [
        cpu_model for cpu_model in intel if cpu_model.name != "Intel Xeon E-2388G" and not cpu_model.name.endswith("M")
    ]
    older = [
        cpu_model
        for cpu_model in OLDER_CPU_MODELS
        if cpu_model.name.startswith("Intel Xeon") and not cpu_model.name.endswith("M")
    ]
    amd = [cpu_model for cpu_model in listed if cpu_model.name.startswith("AMD") and not cpu_model.name.endswith("P")]
    base_of_p = CpuModel("AMD EPYC 7543", 32, 2800, (2021, 3))
    base_of_m = CpuModel("Intel Xeon Gold 6142", 16, 2600, (2017, 9))
    folder = Path(folder)
    _write(folder / "intel-cpus.csv", _ARK, map(_make_ark_row, [*in_ark, base_of_m, in_ark[0], *older]), "")
    _write(folder / "amd-cpus.csv", _AMD, map(_make_amd_row, [*amd, base_of_p]), "\ufeff")
    _write(
        folder / "intel_xeon_processors_v1_8.csv", _XEON, map(_make_xeon_row, [p for p in intel if p not in extra]), ""
    )
    _write(folder / "boavizta_cpu_specs.csv", _BOAVIZTA, map(_make_boavizta_row, [*intel, *amd]), "")


def _write(path: Path, header: tuple[str, ...], rows: Iterable[Mapping[str, object]], mark: str) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _format_quarter(cpu_model: CpuModel) -> str:
    year, month = cpu_model.launch
    return f"Q{(month + 2) // 3}'{year % 100:02d}"


def _make_ark_row(cpu_model: CpuModel) -> dict[str, object]:
    marked = cpu_model.name.replace("Intel Xeon", "Intel® Xeon®")
    no_turbo = cpu_model.facts["tier"] == "bronze"
    node = cpu_model.facts["process_node"]
    behind_bus = cpu_model.facts["family"] in FRONT_SIDE_BUS
    return {
        "CpuName": f"{marked} Processor",
        "AVX512FusedMultiplyAddUnits": int(cpu_model.number("fma_units", 2))
        if cpu_model.number("simd_bits", 0) == 512
        else "",
        "BornOnDate": _format_quarter(cpu_model),
        "Cache": f"{cpu_model.l3_mb} MB L2 Cache" if behind_bus else f"{cpu_model.l3_mb} MB",
        "ClockSpeed": f"{cpu_model.mhz / 1000:.2f} GHz",
        "ClockSpeedMax": "" if no_turbo else f"{cpu_model.turbo_mhz / 1000:.2f} GHz",
        "CoreCount": cpu_model.cores,
        "Lithography": node or "14 nm",
        "MaxTDP": f"{cpu_model.tdp_w} W",
        "NumMemoryChannels": "" if behind_bus else int(cpu_model.number("channels_per_chip", 6)),
        "PCIExpressRevision": {4: "4.0", 5: "5"}.get(int(cpu_model.number("pcie_gen", 3)), "3.0"),
        "ScalableSockets": "1S Only" if " E" in cpu_model.name else "2S",
        "UltraPathInterconnectLinks": "" if " E" in cpu_model.name else 3,
    }


def _make_amd_row(cpu_model: CpuModel) -> dict[str, object]:
    return {
        "Model": cpu_model.name.replace("EPYC", "EPYC™"),
        "# of CPU Cores": cpu_model.cores,
        "Base Clock": f"{cpu_model.mhz / 1000:g}GHz",
        "Max. Boost Clock ¹ ²": f"Up to {cpu_model.turbo_mhz / 1000:g}GHz",
        "L3 Cache": f"{cpu_model.l3_mb}MB",
        "Socket Count": "1P/2P",
        "PCI Express® Version": f"PCIe {int(cpu_model.number('pcie_gen', 4))}.0 x128",
        # The power rating of some CPU models depends on the memory; the first value applies.
        "Default TDP": f"{cpu_model.tdp_w}/{cpu_model.tdp_w + 15}W"
        if cpu_model.launch < (2018, 1)
        else f"{cpu_model.tdp_w}W",
        "Memory Channels": int(cpu_model.number("channels_per_chip", 8)),
    }


def _make_xeon_row(cpu_model: CpuModel) -> dict[str, object]:
    return {
        "Product": cpu_model.name.removeprefix("Intel ").replace(" v6", "v6"),
        "Release Date": _format_quarter(cpu_model),
        "Cores": cpu_model.cores,
        # This list writes Intel 7 as 7 nm, and a cache size in the power column of one CPU model.
        "Lithography(nm)": 7 if cpu_model.facts["process_node"] == "Intel 7" else 14,
        "Max. Turbo Freq.(GHz)": f"{cpu_model.turbo_mhz / 1000:.2f}",
        "Base Freq.(GHz)": f"{cpu_model.mhz / 1000:.2f}",
        "Cache(MB)": cpu_model.l3_mb,
        "TDP(W)": "30.165" if cpu_model.name.endswith("8380H") else cpu_model.tdp_w,
    }


def _make_boavizta_row(cpu_model: CpuModel) -> dict[str, object]:
    year, month = cpu_model.launch
    name_only = cpu_model.cores % 16 == 0
    known: dict[str, object] = {
        "release_date": f"{year}-{month:02d}-15",
        "frequency": f"{cpu_model.mhz} MHz",
        "tdp": float(cpu_model.tdp_w),
        "cores": float(cpu_model.cores),
        "process_size": 10.0 if cpu_model.facts["process_node"] == "Intel 7" else 14.0,
    }
    return {"name": cpu_model.name, "manufacturer": cpu_model.name.split()[0], **({} if name_only else known)}
