"""Check the description of a machine that measurements come with."""

from __future__ import annotations

from pathlib import Path

from perfcast.errors import UserError
from perfcast.io import read_json


def check_machine(path: Path, remedy: str) -> None:
    """Check that a file holds one JSON object. Raises: UserError."""
    try:
        machine = read_json(path)
    except (OSError, UserError):
        machine = None
    if not isinstance(machine, dict):
        raise UserError(
            f"{path.name} must be a JSON object that describes the machine", "it is absent or is not one", remedy
        )
