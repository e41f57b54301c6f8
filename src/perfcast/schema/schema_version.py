"""Version of the files that stages exchange: those of another release are refused, not misread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfcast.utils.errors import UserError

SCHEMA_VERSION = 3
"""Raised when names or meanings in tables, models, champions or evaluations change."""
SCHEMA_KEY = "schema_version"


def check_schema_version(about: Mapping[str, Any], path: Path) -> None:
    """Raise a UserError where the content of a file is of another schema version."""
    version = about.get(SCHEMA_KEY)
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} must have schema version {SCHEMA_VERSION}",
            f"it has {'none' if version is None else version}, of another release of perfcast",
            "run snakemake to make it again",
        )
