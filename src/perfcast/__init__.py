"""perfcast predicts benchmark results of computers from their characteristics."""

from __future__ import annotations

import importlib

__version__ = "2.0.0"

__all__ = ["Champion", "UserError", "__version__", "estimator", "load_champion", "predict"]
"""Names of `perfcast.api`, imported at first use because every command imports this package."""


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("perfcast.api"), name)
    raise AttributeError(f"module 'perfcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
