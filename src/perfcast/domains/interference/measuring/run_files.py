"""Files of a campaign: its plan, and one compressed JSON file per finished run."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfcast.domains.interference.measuring.execution import Record
from perfcast.domains.interference.measuring.scenarios import Design, Run
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, read_json, write_json

_RUN_FILE = re.compile(r"run-(\d{5})-(\d)\.json\.gz")
_LARGEST_RECORD = 200_000_000
"""Bytes of a record, beyond which the file is damaged."""


def check_plan(folder: Path, design: Design, minutes: float) -> None:
    """Write the plan's settings, or compare them with those of the campaign to resume.

    A longer time continues the same plan, so it may change. Raises: UserError when other settings differ.
    """
    path = folder / "plan.json"
    values = json.loads(json.dumps(asdict(design)))
    if path.exists():
        before = read_json(path)
        differing = [name for name, value in values.items() if before.get(name) != value]
        if differing:
            requirement = f"a campaign in {folder} resumes with the same settings"
            raise UserError(requirement, f"{differing[0]} differs", "name another --out, or remove the folder")
    write_json(path, {**values, "minutes": minutes})


def write_record(folder: Path, record: Record) -> None:
    """Write a finished run atomically."""
    with atomic_path(folder / f"run-{record.run.number:05d}-{record.attempt}.json.gz") as path:
        text = json.dumps(record.to_json(), allow_nan=False, separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), compresslevel=6, mtime=0))


def finished_runs(folder: Path) -> dict[tuple[int, int], Path]:
    """Return the files of finished runs by number and attempt, in order."""
    files = {}
    for path in sorted(folder.glob("run-*.json.gz")):
        if match := _RUN_FILE.fullmatch(path.name):
            files[int(match[1]), int(match[2])] = path
    return files


def read_record(path: Path) -> dict[str, Any]:
    """Return the record of a finished run. Raises: UserError for a damaged file."""
    try:
        with gzip.open(path, "rb") as file:
            record = json.loads(file.read(_LARGEST_RECORD))
        Run.from_json(record["run"])
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} must be a finished run", "it cannot be read", "remove it, and measure again"
        ) from error
    return dict(record)
