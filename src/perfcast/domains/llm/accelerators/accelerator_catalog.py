"""Catalog of GPUs and of the shapes of language models: public facts that ship with the project."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import pandas as pd

GPU_FACTS = (
    "sm_count",
    "l2_mib",
    "bf16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "memory_gb_per_s",
    "memory_gib",
    "link_gb_per_s",
    "power_w",
    "generation_year",
)
"""Numerical facts of a GPU."""
MODEL_FACTS = (
    "total_params_1e9",
    "active_params_1e9",
    "layers",
    "hidden",
    "kv_elements",
    "full_layers",
    "window_layers",
    "window",
    "experts",
    "experts_per_token",
)
"""Numerical facts of a model."""
MODEL_LIMITS = (
    "heads",
    "kv_heads",
    "context_tokens",
)
"""Numbers that limit the deployments of a model."""


@cache
def read_gpus() -> pd.DataFrame:
    """Return the catalog of GPUs, indexed by name."""
    return _read("gpus.csv").set_index("gpu")


@cache
def read_models() -> pd.DataFrame:
    """Return the catalog of language models, indexed by family."""
    return _read("llm_models.csv").set_index("family").join(read_layers()[["heads", "kv_heads"]])


@cache
def read_layers() -> pd.DataFrame:
    """Return the shapes of the layers of the catalog's language models, indexed by family; 0 is none."""
    return _read("llm_layers.csv").set_index("family")


def find_gpus(names: pd.Series) -> pd.Series:
    """Return the catalog's name of each GPU; missing for an unknown one. Case and surrounding blanks do not matter."""
    by_alias = {}
    for gpu, aliases in read_gpus()["aliases"].items():
        for alias in (*aliases.split("|"), str(gpu).lower()):
            by_alias[alias] = gpu
    gpus: pd.Series = names.str.strip().str.lower().map(by_alias)
    return gpus.astype("str").where(gpus.notna())


def find_models(names: pd.Series) -> pd.Series:
    """Return the family of each model; missing for an unknown one.

    A name may have a publisher in front ("openai/gpt-oss-120b").
    """
    patterns = read_models()["pattern"]

    def find(name: str) -> str | None:
        return next(
            (str(family) for family, pattern in patterns.items() if re.search(pattern, name.lower())),
            None,
        )

    families = names.map({name: find(name) for name in names.unique()})
    return families.astype("str").where(families.notna())


def _read(name: str) -> pd.DataFrame:
    with (files(__package__) / name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
