"""Generated types of cloud instances on the CPU models of the generated results."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perfcast.domains.servers.testing.generated_rows import CPU_MODELS
from perfcast.utils.io import atomic_path


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write cloud_instances.csv: `rows` types, most with the name of a CPU model, some with the family alone."""
    random = np.random.default_rng(seed)
    lines = ["instance_type,vcpus,cpu_model,family,threads_per_core,other_families,memory_gb"]
    for number in range(rows):
        model = CPU_MODELS[int(random.integers(len(CPU_MODELS)))].name.lower() if number % 5 else ""
        vcpus = 2 ** int(random.integers(1, 6))
        others = "Milan" if number % 7 == 0 else ""
        lines.append(f"x{number}.size,{vcpus},{model},,2,{others},{4 * vcpus}")
    with atomic_path(Path(folder) / "cloud_instances.csv") as path:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
