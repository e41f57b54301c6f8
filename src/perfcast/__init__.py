"""perfcast forecasts benchmark results of machines from their characteristics."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_LIBRARY = {
    "estimator": "perfcast.estimators",
    "load_champion": "perfcast.forecasting",
    "predict": "perfcast.forecasting.library",
}
"""What a program asks for, and where it lies: imported when it is asked for, as every command imports this package."""


def __getattr__(name: str) -> Any:
    if name in _LIBRARY:
        return getattr(importlib.import_module(_LIBRARY[name]), name)
    raise AttributeError(f"module 'perfcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LIBRARY])
