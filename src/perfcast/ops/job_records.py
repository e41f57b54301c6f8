"""Records of jobs that travel with the results, so that a clone trains again only what others did not train like this.

Snakemake compares the code, the parameters and the inputs of a job with those that made its files. It keeps them in
`.snakemake`, which stays on one machine. `jobs.json` has them as well, and DVC versions it.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

from perfcast.utils.io import read_json, write_json, write_text

_METADATA = Path(".snakemake/metadata")
RECORDS = "jobs.json"
_COMPARED = ("rule", "input", "params", "code", "shellcmd", "software_stack_hash", "input_checksums")
"""What Snakemake compares; times and numbers of jobs would differ in each run of the same."""
_OF_ONE_MACHINE = {"ingest"}
"""Rules whose parameters say what a machine has, such as mirrors."""


def save_job_records(results: Path) -> int:
    """Write the records of the files in a folder of results to its `jobs.json`. Returns: their number."""
    records = {}
    for record in _METADATA.glob("*"):
        name = _file_of(record)
        content = read_json(record) if name.startswith(f"{results}/") and Path(name).exists() else {}
        if content and content["rule"] not in _OF_ONE_MACHINE:
            records[name] = {key: content[key] for key in _COMPARED}
    write_json(results / RECORDS, dict(sorted(records.items())))
    return len(records)


def restore_job_records(results: Path) -> int:
    """Take over the records of pulled results. Returns: the number of files that other jobs made than today's would.

    `snakemake --touch --forceall` comes first: it records every file as made by today's code and parameters.
    """
    path = results / RECORDS
    changed = 0
    for name, pulled in (read_json(path) if path.exists() else {}).items():
        record = _METADATA / urlsafe_b64encode(name.encode()).decode()
        if record.exists():
            content: dict[str, Any] = read_json(record)
            changed += any(content[key] != pulled[key] for key in ("input", "params", "code"))
            write_text(record, json.dumps(content | pulled))
    return changed


def _file_of(record: Path) -> str:
    """Return the file of a record; Snakemake divides names that are too long for a file, which no result has."""
    return "" if record.is_dir() else urlsafe_b64decode(record.name).decode()
