"""What every module of this package gets and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfcast import plugins
from perfcast.config import Params

FINE, CARE, BROKEN = "fine", "care", "broken"
"""A run goes well; it goes, and differently than one might think; it fails."""


@dataclass(frozen=True)
class Place:
    """Where a run would be started. `params` is None where params.yaml is not valid."""

    project: Path
    cache: Path
    mirrors: Sequence[Path]
    embedded: Path
    params: Params | None

    @property
    def results(self) -> Path:
        """Where results go unless a command says otherwise."""
        return self.project / "results"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: its state (FINE, CARE or BROKEN), what was found, and what to do about it."""

    what: str
    state: str
    found: str
    remedy: str = ""


def examine(place: Place) -> list[Finding]:
    """Look at everything, in the order of the modules' ORDER and then of their names."""
    modules = [plugins.load("doctor", name) for name in plugins.names("doctor")]
    return [finding for module in sorted(modules, key=lambda one: one.ORDER) for finding in module.look(place)]
