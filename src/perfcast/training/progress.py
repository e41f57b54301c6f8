"""Listeners of running trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

EpochListener = Callable[[Mapping[str, float]], None]
EPOCH_LISTENERS: list[EpochListener] = []
"""Functions that get the learning curve's entry of each epoch as it ends. Worker processes have none."""


@contextmanager
def listening(listener: EpochListener) -> Iterator[None]:
    """Call `listener` at the end of every epoch that this process trains within the block."""
    EPOCH_LISTENERS.append(listener)
    try:
        yield
    finally:
        EPOCH_LISTENERS.remove(listener)
