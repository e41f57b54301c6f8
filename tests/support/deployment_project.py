"""Champion of generated deployments of language models, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generated_champions import write_champion

from perfcast.domains.llm.datasets.deployments import build
from perfcast.inference import Champion, load_champion

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
    return write_champion(DATASET, FEATURES, build, "aiconfigurator", rows=900)


@cache
def champion() -> Champion:
    """Return the champion."""
    return load_champion(results() / "champion" / DATASET, DATASET)
