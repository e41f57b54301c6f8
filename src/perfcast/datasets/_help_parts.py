"""Which rows HELP's authors learned from, chose by and were judged on, from what the data set's conf says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.errors import UserError

_REMEDY = "edit options in the data set's conf"


@dataclass(frozen=True)
class Protocol:
    """The authors' parts: devices to learn from, to choose by and to be judged on, and architectures by position.

    Devices to learn from show the first `pool` architectures and the references, others the references alone; those
    to choose by are judged on the pool. The next `queries` architectures are what test devices are judged on, without
    the share `trimmed` of the fastest and of the slowest. At most four fifths of the architectures are learned from.
    """

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    pool: int
    queries: int
    trimmed: float


def protocol_of(options: Mapping[str, Any], devices: Sequence[str]) -> Protocol:
    """Read the option `protocol`. Raises: UserError when it is incomplete, or names no device of the data set."""
    given = options.get("protocol")
    keys = {"train", "valid", "test", "pool", "queries", "trimmed"}
    if not isinstance(given, Mapping) or set(given) != keys:
        keys_given = sorted(given) if isinstance(given, Mapping) else given
        raise UserError(
            f"option 'protocol' must have the keys {', '.join(sorted(keys))}", f"found {keys_given!r}", _REMEDY
        )
    parts = {part: tuple(given[part]) for part in ("train", "valid", "test")}
    named = [device for part in parts.values() for device in part]
    unknown = sorted(set(named) - set(devices))
    if unknown or len(set(named)) < len(named):
        fact = f"{', '.join(unknown)} is none" if unknown else "one is there twice"
        raise UserError("the devices of 'protocol' must be different ones of the data set", fact, _REMEDY)
    return Protocol(**parts, pool=int(given["pool"]), queries=int(given["queries"]), trimmed=float(given["trimmed"]))


def parts_of(protocol: Protocol, device: str, latency: np.ndarray, references: Sequence[int]) -> np.ndarray:
    """Return the part of each architecture on a device: train, valid, test, or unused.

    Shapes: latency (architectures,) ms, NaN where it was quarantined -> (architectures,) object.
    A reference is never judged: the authors left one of them among the architectures that they judged.
    """
    count = len(latency)
    position = np.arange(count)
    pool = min(protocol.pool, count * 4 // 5)
    learned = position < pool
    reference = np.isin(position, list(references))
    parts = np.full(count, "unused", dtype=object)
    if device in protocol.train:
        parts[learned | reference] = "train"
    elif device in protocol.valid:
        parts[learned] = "valid"
        parts[reference] = "train"
    elif device in protocol.test:
        query_rows = np.flatnonzero((position >= pool) & (position < pool + protocol.queries))
        order = query_rows[np.argsort(latency[query_rows], kind="stable")]
        parts[order[int(len(order) * protocol.trimmed) : int(len(order) * (1 - protocol.trimmed))]] = "test"
        parts[reference] = "train"
    return parts
