"""The project that is checked, and the findings of the checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfcast.config.experiment_params import Params

FINE, CARE, BROKEN = "fine", "care", "broken"
"""A run succeeds; it runs, but differs from what a user may expect; it fails."""


@dataclass(frozen=True)
class ProjectPlace:
    """Project in which a run would start. `params` is None where params.yaml is not valid."""

    project: Path
    cache: Path
    mirrors: Sequence[Path]
    embedded: Path
    params: Params | None

    @property
    def results(self) -> Path:
        """Default folder of results."""
        return self.project / "results"


@dataclass(frozen=True)
class Finding:
    """Result of one check: its subject, its state (FINE, CARE or BROKEN), the fact, and the remedy."""

    what: str
    state: str
    found: str
    remedy: str = ""
