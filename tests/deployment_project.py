"""Champion of generated deployments of language models, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from perfcast.data.datasets.llm_serving.deployments import build
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference import Champion, load_champion
from perfcast.inference.champion import build_features, save_champion
from perfcast.predictors.linear import Ridge
from perfcast.testing import aiconfigurator

DATASET, FEATURES = "llm_serving", ("llm_serving", "llm_operators")
KNOWN = {"gpu": "H200", "model": "llama-3.1-70b", "batch": 32, "input": 2048, "output": 256, "tensor-parallel": 4}
FLAGS = ["--gpu", "H200", "--model", "llama-3.1-70b", "--batch", "32", "--input", "2048", "--output", "256"]
CONFIG = {
    "num_hidden_layers": 80,
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
"""Shape of Llama 3.1 70B."""
GPU_FACTS = {"bf16_tflops": 2000, "memory_gb_per_s": 8000, "memory_gib": 200, "link_gb_per_s": 900}


@cache
def results() -> Path:
    """Return a folder of results with the champion."""
    folder = Path(mkdtemp(prefix="perfcast-deployments-"))
    raw = {"aiconfigurator": folder / "raw" / "aiconfigurator"}
    aiconfigurator.write(raw["aiconfigurator"], rows=900, seed=3)
    standard = build(raw, {}).table
    table = build_features(DATASET, standard.frame, standard.columns, FEATURES)
    predictor, _ = fit_all_rows(table, {"params": lambda seed: Ridge()}, 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 1)
    about = {"dataset": DATASET, "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    path = folder / "champion" / DATASET
    path.mkdir(parents=True)
    save_champion(path, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return folder


@cache
def champion() -> Champion:
    """Return the champion."""
    return load_champion(results() / "champion" / DATASET, DATASET)
