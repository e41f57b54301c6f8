"""Status of the sources before anything runs: the plan lists the jobs of the datasets that have theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from perfcast.utils.io import read_object


class SourceStatus(Enum):
    """Status of a source when jobs are planned; UNKNOWN where only a download can tell."""

    PRESENT = "present"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Means:
    """Means to get a source: its files on this machine, the network, and whether the run must have it."""

    at_hand: bool
    network: bool
    strict: bool


_PULLED = Means(at_hand=True, network=True, strict=True)
"""Means of a source that came with results from elsewhere, such as by `dvc pull`: nothing on this machine matters."""


@dataclass(frozen=True)
class SourcePlan:
    """Status of a source, and the means that it has; other means than those of its ingestion ingest it again."""

    status: SourceStatus
    means: Means


def plan_source(
    manifest: Path, origin: Path, at_hand: Callable[[], bool], *, network: bool, strict: bool
) -> SourcePlan:
    """Return the plan of a source from the files of this machine.

    A source that was ingested stays present, whatever becomes of the mirrors and the network. A missing source is
    ingested again when its means changed.

    Args:
        manifest: Manifest of the source below results/raw; it need not exist.
        origin: Record of its ingestion below results/logs; it need not exist.
        at_hand: Whether the cache, a mirror folder or data/embedded has its files; called unless it is present.
        network: Whether the experiment may use the network.
        strict: Whether a missing source stops the run.
    """
    recorded = _read_means(origin)
    status = read_object(manifest, "status")["status"] if manifest.exists() else None
    if status == SourceStatus.PRESENT.value:
        return SourcePlan(SourceStatus.PRESENT, recorded or _PULLED)
    means = Means(at_hand(), network, strict)
    if means.at_hand or strict:
        tried_in_vain = status is not None and means == recorded and not strict
        return SourcePlan(SourceStatus.MISSING if tried_in_vain else SourceStatus.PRESENT, means)
    if network and (status is None or means != recorded):
        return SourcePlan(SourceStatus.UNKNOWN, means)
    return SourcePlan(SourceStatus.MISSING, means)


def _read_means(origin: Path) -> Means | None:
    """Return the means that an ingestion recorded, or None where there is no complete record."""
    record = read_object(origin) if origin.exists() else {}
    names = ("at_hand", "network", "strict")
    return Means(**{name: bool(record[name]) for name in names}) if set(names) <= set(record) else None
