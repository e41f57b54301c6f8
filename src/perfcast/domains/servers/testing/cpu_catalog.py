"""Generated processor catalog: four tables shaped like the published ones, including their pitfalls."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.generated_rows import (
    CPU_MODELS,
    OLDER_CPU_MODELS,
    CpuModel,
    make_row,
    read_layout,
)
from perfcast.utils.io import atomic_path

_LAST_LISTED = (2023, 6)
"""Last launch in the tables; as with the real catalog, later CPU models are unlisted."""

_TWINS = CpuModel("Intel Xeon Gold 6142", 16, 2600, (2017, 9)), CpuModel("AMD EPYC 7543", 32, 2800, (2021, 3))
"""CPU models with the specification of a listed one with M, and of one with P."""


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the four tables with every listed CPU model, and `rows` further CPU models without results."""
    random = np.random.default_rng(seed)
    extra = [CpuModel(f"Intel Xeon Z-{1000 + i}", int(random.integers(2, 64)), 2000, (2020, 1)) for i in range(rows)]
    listed = [model for model in CPU_MODELS if model.launch <= _LAST_LISTED]
    xeons = [model for model in listed if model.name.startswith("Intel Xeon")]
    older = [model for model in OLDER_CPU_MODELS if model.name.startswith("Intel Xeon")]
    amd = [model for model in listed if model.name.startswith("AMD") and not model.name.endswith("P")]
    # As in the real tables, the Xeon list has a CPU model that ARK lacks.
    in_ark = [*xeons, *extra, _TWINS[0], xeons[0], *older]
    _write(folder, "intel-cpus", [model for model in in_ark if not model.name.endswith(("M", "-2388G"))])
    _write(folder, "amd-cpus", [*amd, _TWINS[1]], "\ufeff")
    _write(folder, "intel_xeon_processors_v1_8", xeons)
    _write(folder, "boavizta_cpu_specs", [*xeons, *extra, *amd])


def _write(folder: Path, name: str, cpu_models: list[CpuModel], mark: str = "") -> None:
    layout = read_layout(name)
    path = Path(folder) / f"{name}.csv"
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(layout)
        writer.writerows(make_row(layout, model.values).values() for model in cpu_models)
