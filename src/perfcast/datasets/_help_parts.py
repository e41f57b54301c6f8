"""Training, validation and test rows of HELP's authors, from option `protocol` of the dataset's conf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.errors import UserError

_REMEDY = "edit options.protocol in the dataset's conf"


@dataclass(frozen=True)
class Protocol:
    """The authors' split: devices by subset, and architectures by position.

    Training devices use the first `pool` architectures and the references. Other devices train on the references
    alone. Validation devices are evaluated on the pool. Test devices are evaluated on the next `queries`
    architectures, without the share `trimmed` of the fastest and of the slowest. The pool holds at most four fifths of
    the architectures.
    """

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    pool: int
    queries: int
    trimmed: float


def read_protocol(options: Mapping[str, Any], devices: Sequence[str]) -> Protocol:
    """Return option `protocol`.

    Raises:
        UserError: The option is incomplete, or lists a device that the dataset lacks or lists twice.
    """
    protocol = options.get("protocol")
    keys = {"train", "valid", "test", "pool", "queries", "trimmed"}
    if not isinstance(protocol, Mapping) or set(protocol) != keys:
        value = sorted(protocol) if isinstance(protocol, Mapping) else protocol
        raise UserError(f"option 'protocol' must have the keys {', '.join(sorted(keys))}", f"found {value!r}", _REMEDY)
    subsets = {subset: tuple(protocol[subset]) for subset in ("train", "valid", "test")}
    listed = [device for subset in subsets.values() for device in subset]
    unknown = sorted(set(listed) - set(devices))
    if unknown or len(set(listed)) < len(listed):
        fact = f"the dataset has no {', '.join(unknown)}" if unknown else "one device is listed twice"
        raise UserError("option 'protocol' must list different devices of the dataset", fact, _REMEDY)
    pool, queries, trimmed = int(protocol["pool"]), int(protocol["queries"]), float(protocol["trimmed"])
    return Protocol(**subsets, pool=pool, queries=queries, trimmed=trimmed)


def assign_subsets(protocol: Protocol, device: str, latency: np.ndarray, references: Sequence[int]) -> np.ndarray:
    """Return the subset of each architecture on a device: train, valid, test, or unused.

    A reference is never evaluated, although the authors left one reference among their test architectures.

    Shapes: latency (architectures,) -> (architectures,) object.
    Units: latency ms, NaN where it was quarantined.
    """
    count = len(latency)
    position = np.arange(count)
    pool = min(protocol.pool, count * 4 // 5)
    pooled = position < pool
    reference = np.isin(position, list(references))
    subsets = np.full(count, "unused", dtype=object)
    if device in protocol.train:
        subsets[pooled | reference] = "train"
    elif device in protocol.valid:
        subsets[pooled] = "valid"
        subsets[reference] = "train"
    elif device in protocol.test:
        query_rows = np.flatnonzero((position >= pool) & (position < pool + protocol.queries))
        order = query_rows[np.argsort(latency[query_rows], kind="stable")]
        subsets[order[int(len(order) * protocol.trimmed) : int(len(order) * (1 - protocol.trimmed))]] = "test"
        subsets[reference] = "train"
    return subsets
