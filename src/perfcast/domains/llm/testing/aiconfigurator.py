"""Generated deployments of language models, shaped like the published file, with its known defects.

The numbers are made up: they follow bytes and operations with noise, and describe no real deployment.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from perfcast.domains.llm.accelerators.accelerator_catalog import read_gpus, read_models
from perfcast.utils.io import atomic_path

FILE = "silicon_sample.csv"
_MODELS = {
    "deepseek-ai/DeepSeek-R1": "dsv3",
    "openai/gpt-oss-120b": "gptoss",
    "meta-llama/Llama-3.1-70B": "llama70",
    "meta-llama/Llama-3.1-8B-Instruct": "llama8",
    "Qwen/Qwen3-32B": "qwen32",
    "MiniMaxAI/MiniMax-M2.5": "minimax",
}
_GPUS = {
    "h100_sxm": "H100",
    "h200_sxm": "H200",
    "b200_sxm": "B200",
    "gb200": "GB200",
}
_LOADS = (4, 8, 16, 32, 64, 128, 256)


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the file of deployments, with about `rows` quantities and each known defect once, and a license."""
    random = np.random.default_rng(seed)
    deployments = max(12, rows // (2 * len(_LOADS)))
    records = [record for number in range(deployments) for record in _draw_deployment(number, random)]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        atomic_path(folder / FILE) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, records[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*records, *_make_defective(records)])
    with atomic_path(folder / "LICENSE") as temporary:
        temporary.write_text("Generated text in the place of a license.\n", encoding="utf-8")


def _draw_deployment(number: int, random: np.random.Generator) -> list[dict[str, object]]:
    """Return the records of one deployment at every load."""
    model, family = list(_MODELS.items())[number % len(_MODELS)]
    system, gpu = list(_GPUS.items())[int(random.integers(len(_GPUS)))]
    facts = read_gpus().loc[gpu]
    shape = read_models().loc[family]
    parallel = int(random.choice([2, 4, 8]))
    experts = shape["experts"] > 0
    isl, osl = (int(value) for value in random.choice([512, 1024, 2048, 8192], 2))
    precision = str(random.choice(["fp8", "bf16", ""]))
    day = f"2026-{1 + number % 4:02d}-{1 + number % 27:02d}"
    records: list[dict[str, object]] = []
    for load in _LOADS:
        weights = (1 + (precision != "fp8")) * shape["total_params_1e9"] / parallel / facts["memory_gb_per_s"] * 1e3
        prompt = 2 * shape["active_params_1e9"] * isl / parallel / facts["bf16_tflops"]
        tpot = (3 + weights * (0.2 if experts else 1) + prompt * load / osl) * np.exp(random.normal(0, 0.05))
        ttft = (20 + prompt * (1 + load / 4)) * np.exp(random.normal(0, 0.1))
        origin = f"source_file={day}.csv; silicon_concurrency={load}; measured={day}T00:00:00Z; wip={number % 9 == 8}"
        records.append(
            {
                "id": f"made_up_{number}_{load}",
                "silicon_data_source": origin,
                "backend": str(random.choice(["vllm", "sglang"])),
                "backend_version": "0.1",
                "model_path": model,
                "system": system,
                "precision": precision,
                "mode": "agg",
                "isl": isl,
                "osl": osl,
                "gemm_quant_mode": precision,
                "moe_quant_mode": precision if experts else "",
                "batch_size": load,
                "tp_size": parallel,
                "pp_size": 1,
                "attention_dp_size": 1,
                "moe_tp_size": parallel if experts else 1,
                "moe_ep_size": 1,
                "silicon_ttft_ms": f"{ttft:.6f}",
                "silicon_tpot_ms": f"{tpot:.6f}",
            }
        )
    return records


def _make_defective(records: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return records with one defect each, and a repetition of the first record under another version."""
    first = records[0]  # of a mixture of experts
    defects: list[dict[str, object]] = [
        {"silicon_data_source": "source_file=a.csv", "batch_size": ""},
        {"moe_ep_size": 0},
        {"tp_size": 16, "moe_tp_size": 4, "moe_ep_size": 4},
        {"tp_size": 72, "moe_tp_size": 72},
        {"mode": "disagg", "tp_size": "", "moe_tp_size": ""},
        {"model_path": "made-up/unknown-1b"},
        {"system": "made_up_gpu"},
        {"precision": "fp7"},
        {"silicon_tpot_ms": "nan"},
        {"silicon_ttft_ms": "-3"},
        {"backend_version": "0.2"},
    ]
    return [{**first, **defect} for defect in defects]
