"""Catalogs of accelerators and of benchmarked models: public facts that ship with the project, typed and dated."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import pandas as pd

FACTS = (
    "fp32_tflops",
    "bf16_tflops",
    "fp16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "int8_tops",
    "memory_gib",
    "memory_gb_per_s",
    "link_gb_per_s",
    "power_w",
    "generation_year",
    "quality",
)
"""Numerical facts of an accelerator."""
MODEL_FACTS = (
    "params_1e9",
    "active_params_1e9",
    "first_limit_ms",
    "token_limit_ms",
)
"""Numerical facts of a model in a scenario; without a limit it is missing."""

WITHOUT_FACTS = ("recaccel", "x220", "speedai", "biren", "neuron")
"""Generations whose facts are too incomplete to predict from."""

_MARKS = re.compile(
    r"\((?:r|tm|c)\)|[®™©]|@.*$|\d+-core processor|\bcpu(?! max)\b|^nvidia |^amd (?:instinct )?|^intel\b"
)


@cache
def read_accelerators() -> pd.DataFrame:
    """Return the catalog of accelerators, indexed by name."""
    return _read("accelerators.csv").set_index("accelerator")


@cache
def read_models() -> pd.DataFrame:
    """Return the catalog of benchmarked models, indexed by name."""
    return _read("mlperf_models.csv").set_index("model")


def accelerator_key(name: str) -> str:
    """Return the name of an accelerator or a processor without marks, vendor and clock, in lower case."""
    text = " ".join(name.lower().split())
    # twice: what stands behind a mark may be a mark
    for _ in range(2):
        text = _MARKS.sub(" ", text)
    return " ".join(text.replace("-", " ").split())


@cache
def names_by_key() -> dict[str, str]:
    """Return the catalog's name of every key of a name and an alias; an alias of two accelerators has none."""
    table = read_accelerators()
    keys: dict[str, set[str]] = {}
    for name, aliases in table["aliases"].fillna("").items():
        for alias in [str(name), *aliases.split("|")]:
            keys.setdefault(accelerator_key(alias), set()).add(str(name))
    return {key: names.pop() for key, names in keys.items() if key and len(names) == 1}


def find_accelerator(name: str) -> str | None:
    """Return the catalog's name of a typed or published name, None where it knows none."""
    return names_by_key().get(accelerator_key(name))


def find_typed_accelerator(name: str) -> str | None:
    """Return the catalog's name of a typed name: a bare one, such as H100, is that of the board on SXM."""
    return find_accelerator(name) or find_accelerator(f"{name} SXM")


def _read(name: str) -> pd.DataFrame:
    with (files(__package__) / name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
