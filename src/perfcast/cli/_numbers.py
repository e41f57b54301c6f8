"""Readers of numbers on the command line; a number out of range is a mistake in one line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

LARGEST_SEED = 2**32 - 1
"""The largest seed of numpy."""


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        plain = text.strip().removeprefix("+").removeprefix("-")
        value = int(text) if plain.isascii() and plain.isdigit() and len(plain) <= 20 else None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}; got {text[:60]!r}")
        return value

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of numbers from `low` to `high`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} to {high:g}; got {text[:60]!r}")
        return value

    return read


seed = whole(0, LARGEST_SEED)
backtests = whole(0, 10)
resamples = whole(1, 100_000)
level = number(1e-6, 1 - 1e-6)
