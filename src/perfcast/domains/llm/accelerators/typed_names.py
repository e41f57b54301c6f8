"""GPUs and language models by the names that people type: `H200 SXM`, `meta-llama/Llama-3.1-70B-Instruct`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from perfcast.domains import read_table
from perfcast.domains.llm.accelerators.accelerator_catalog import read_gpus, read_models

_JOINTS = re.compile(r"[\s_/,:()\-]+")
_NOT_PLAIN = re.compile(r"[^a-z0-9]")
_MAX_CANDIDATES = 4
_MAX_REMEMBERED = 4096
"""Typed names whose meaning is remembered: a batch repeats them."""
_SIMILARITY = 0.55


def _read_words(table: str) -> dict[str, str]:
    """Return the words of a table in `name_words.csv` with their meanings, "" for words that tell nothing."""
    rows = read_table(__package__, "name_words.csv")
    return {row["word"]: row["meaning"] for row in rows if row["table"] == table}


_GPU_FILLERS = _read_words("gpu filler")
"""Words that tell nothing beside the name of a GPU. `PCIe` is none: such a board is another GPU."""
_MEMORY = re.compile(r"(\d+)gi?b")
_MEMORY_TOLERANCE = 0.1
"""Vendors round the memory in the names of their boards."""
_VARIANTS = _read_words("model variant")
"""Words of names of models of one shape."""
_PRECISIONS = _read_words("precision")
_BACKENDS = _read_words("backend")


class ModelName(NamedTuple):
    """Model of a typed name: its usual name and family, and the number format that the name tells, "" for none."""

    name: str
    family: str
    precision: str


@lru_cache(maxsize=_MAX_REMEMBERED)
def find_gpu(text: str) -> str | None:
    """Return the catalog's name of a typed GPU, None for an unknown one or one with another memory."""
    words = [word for word in _JOINTS.split(text.lower()) if word]
    memory = [match for word in words if (match := _MEMORY.fullmatch(word))]
    named = [word for word in words if word not in _GPU_FILLERS]
    keys = _gpu_keys()
    # boards of one name may differ in memory
    without_memory = [word for word in named if not _MEMORY.fullmatch(word)]
    gpu = keys.get(_squash(named)) or keys.get(_squash(without_memory))
    if gpu is None:
        return None
    capacity = float(read_gpus()["memory_gib"][gpu])
    fits = all(abs(float(match[1]) / capacity - 1) <= _MEMORY_TOLERANCE for match in memory)
    return gpu if fits else None


@lru_cache(maxsize=_MAX_REMEMBERED)
def find_model(text: str) -> ModelName | None:
    """Return the model of a typed name, None for an unknown one.

    A publisher in front, joints and words for variants of one shape do not matter. Every other word does: a distilled
    model is another one.
    """
    words = _model_words(text)
    precision = next((_PRECISIONS[word] for word in words if word in _PRECISIONS), "")
    known = _model_keys().get(_squash([word for word in words if word not in _PRECISIONS]))
    return None if known is None else ModelName(known[0], known[1], precision)


def find_precision(text: str) -> str | None:
    """Return the number format of a typed one, None for an unknown one."""
    key = text.strip().lower().replace("-", "_")
    return _PRECISIONS.get(key) or _PRECISIONS.get(key.replace("_", ""))


def find_backend(text: str) -> str | None:
    """Return the serving software of a typed name, None for an unknown one."""
    return _BACKENDS.get(_NOT_PLAIN.sub("", text.lower()))


def near_gpus(text: str) -> list[str]:
    """Return the GPUs of the catalog whose names are similar, else the first ones."""
    keys = {key: name for key, name in _gpu_keys().items() if key}
    return _near(_squash(_JOINTS.split(text.lower())), keys)


def near_models(text: str) -> list[str]:
    """Return the models of the catalog whose names are similar, else the first ones."""
    return _near(_squash(_model_words(text)), {key: known[0] for key, known in _model_keys().items()})


def _near(key: str, names: Mapping[str, str]) -> list[str]:
    close = get_close_matches(key, names, n=2 * _MAX_CANDIDATES, cutoff=_SIMILARITY)
    return list(dict.fromkeys(names[each] for each in close or names))[:_MAX_CANDIDATES]


def _model_words(text: str) -> list[str]:
    plain = text.lower().rpartition("/")[2]
    return [word for word in _JOINTS.split(plain) if word and word not in _VARIANTS]


def _squash(words: list[str]) -> str:
    return _NOT_PLAIN.sub("", "".join(words))


@cache
def _gpu_keys() -> Mapping[str, str]:
    keys: dict[str, str] = {}
    for gpu, aliases in read_gpus()["aliases"].items():
        for name in (str(gpu), *aliases.split("|")):
            words = [word for word in _JOINTS.split(name.lower()) if word and word not in _GPU_FILLERS]
            keys.setdefault(_squash(words), str(gpu))
    return MappingProxyType(keys)


@cache
def _model_keys() -> Mapping[str, tuple[str, str]]:
    keys: dict[str, tuple[str, str]] = {}
    for family, names in read_models()["names"].items():
        for place, name in enumerate(names.split("|")):
            # of two names of one model the first is the usual one; other names are other models of the same shape
            usual = next(other for other in names.split("|") if name.startswith(other) or other.startswith(name))
            keys.setdefault(_squash(_model_words(name)), (name if place == 0 else usual, str(family)))
    return MappingProxyType(keys)
