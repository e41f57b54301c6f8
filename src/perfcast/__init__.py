"""perfcast predicts benchmark results of computers from their characteristics."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "estimator": "perfcast.predictors.factory",
    "load_champion": "perfcast.inference.champion",
    "predict": "perfcast.inference.predict",
}
"""Public functions and their modules, imported at first use because every command imports this package."""


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'perfcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
