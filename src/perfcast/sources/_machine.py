"""Check the description of a machine that measurements come with."""

from __future__ import annotations

import json
from pathlib import Path

from perfcast.errors import UserError


def check_machine(path: Path, remedy: str) -> None:
    """Check that a file holds one JSON object. Raises: UserError."""
    try:
        machine = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        machine = None
    if not isinstance(machine, dict):
        raise UserError(
            f"{path.name} must be a JSON object that describes the machine", "it is absent or is not one", remedy
        )
