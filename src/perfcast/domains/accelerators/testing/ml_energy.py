"""Generated configurations of served models, shaped like the published files; the numbers are made up."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.domains.accelerators.datasets.ml_energy import LOADS
from perfcast.utils.io import write_json

_MODELS = (
    ("acorn/A-1B", 1.0, 1.0),
    ("acorn/A-8B", 8.0, 8.0),
    ("birch/B-30B-A3B", 30.0, 3.0),
    ("cedar/C-70B", 70.0, 70.0),
    ("cedar/C-3B", 3.0, 3.0),
    ("elm/E-14B", 14.0, 14.0),
)


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write a file per workload: about `rows` quantities together, and a configuration of an unknown GPU."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    grid = list(
        product(
            _MODELS,
            (("H100", 700.0, 3.35), ("B200", 1000.0, 7.7)),
            (8, 32, 64, 128, 512),
        )
    )
    workloads = [name for load in LOADS.values() for name in load.workloads]
    count = min(len(grid), max(12, rows // len(workloads) // 4))
    for workload in workloads:
        chosen = [grid[place] for place in np.sort(random.permutation(len(grid))[:count])]
        entries = [_configuration(workload, model, gpu, batch, random) for model, gpu, batch in chosen]
        entries.append({**entries[0], "gpu_model": "GPU of nobody"})
        write_json(folder / f"{workload}.json", {"configurations": entries, "task": workload})


def _configuration(
    workload: str,
    model: tuple[str, float, float],
    gpu: tuple[str, float, float],
    batch: int,
    random: np.random.Generator,
) -> dict[str, Any]:
    name, total, active = model
    gpu_name, power, bandwidth = gpu
    gpus = 1 if total < 40 else 4
    step = 1.0 + 2 * active / bandwidth / gpus + batch * active**0.5 / bandwidth / 50
    step *= float(np.exp(random.normal(0, 0.05)))
    watts = gpus * power * (0.4 + 0.5 * batch / (batch + 100))
    common = {
        "activated_params_billions": active,
        "total_params_billions": total,
        "gpu_model": gpu_name,
        "model_id": name,
        "num_gpus": gpus,
        "weight_precision": "bfloat16",
        "avg_power_watts": watts,
    }
    if workload.startswith("text-to"):
        return {
            **common,
            "batch_size": batch,
            "image_height": 1024,
            "image_width": 1024,
            "inference_steps": 20,
            "ulysses_degree": gpus,
            "ring_degree": 1,
            "energy_per_image_joules": watts * step / 10,
        }
    return {
        **common,
        "architecture": "MoE" if active < total else "Dense Transformer",
        "max_num_seqs": batch,
        "tensor_parallel": gpus,
        "expert_parallel": 1,
        "data_parallel": 1,
        "median_itl_ms": step,
        "output_throughput_tokens_per_sec": 1000 * batch / step,
        "p90_itl_ms": 1.3 * step,
        "p95_itl_ms": 1.6 * step,
        "p99_itl_ms": 3 * step,
    }
