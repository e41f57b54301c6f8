"""All jobs of a run: their shell functions and requests to a cluster; the start and the end of the run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from perfcast.ops.run_lock import LOCK, end_on_hangup, hold_results
from perfcast.utils.errors import UserError
from perfcast.utils.io import abandoned_paths, remove_path
from perfcast.utils.result_digests import verify_inputs

_PREFIX = r"""
set -euo pipefail
# every job shares the lock of the results
{ exec 9< %(lock)s && flock --shared 9; } 2> /dev/null || true
perfcast() { %(python)s -m perfcast "$@"; }
# `logged FILE COMMAND` writes the messages of a command to a file, which the progress display reads
logged() {
    local log=$1 last code=0
    shift
    { last=$("$@" 2>&1 >&3 | { tee "$log" 2> /dev/null || true; } | tail -n 1); } 3>&1 || code=$?
    # where the disk is full, the last one is shown
    [ -s "$log" ] || [ -z "$last" ] || echo "$last" >&2
    return $code
}
# not params: another mirror ingests no source again that is present
ingest_options=(%(ingest)s)
"""


def name_invocation() -> None:
    """Name this invocation: it is one parent run in MLflow, and its jobs inherit the name."""
    os.environ.setdefault("PERFCAST_INVOCATION", f"{datetime.now():%Y-%m-%d %H:%M:%S}")


def shell_prefix(results: Path, ingest_options: str) -> str:
    """Return what comes before the command of every job, with braces as Snakemake formats it."""
    names = {"lock": shlex.quote(str(results / LOCK)), "python": shlex.quote(sys.executable), "ingest": ingest_options}
    return (_PREFIX % names).replace("{", "{{").replace("}", "}}")


def refuse(error: UserError, code: int = 2) -> NoReturn:
    """End the run in one line."""
    print(f"perfcast: {error}", file=sys.stderr)
    raise SystemExit(code)


# Requests to a cluster: 1.5 times the memory of the largest job of a kind in results/benchmarks (train 1.2 GB, the
# others 0.2 to 0.7 GB), and many times its seconds. Each retry requests more.
def gigabytes(first: int) -> Callable[[Any, int], int]:
    """Return the memory of a job by attempt. Units: GB to MB."""
    return lambda wildcards, attempt: 1000 * first * attempt


def minutes(first: int) -> Callable[[Any, int], int]:
    """Return the time of a job by attempt. Units: minutes."""
    return lambda wildcards, attempt: first * attempt


def start_run(results: Path, inputs: Iterable[str]) -> None:
    """Lock the results, verify what jobs will read, and remove what killed jobs left.

    Snakemake deletes the outputs of a job before it starts, so a job that refuses its inputs costs the last results.
    Raises: UserError when another run has the lock, or an input has changed.
    """
    hold_results(results)
    verify_inputs([Path(path) for path in sorted(inputs)])
    end_on_hangup()
    remove_unfinished(results)


def remove_unfinished(results: Path) -> list[Path]:
    """Remove the temporary files that killed jobs left below a folder of results, and return them."""
    paths = list(abandoned_paths(results, without={results / "mlflow"}))
    for path in paths:
        remove_path(path)
    return paths


def print_record_note(results: Path) -> None:
    """Print the note of a run that could not be recorded."""
    note = results / "logs" / "record.txt"
    text = note.read_text().strip() if note.exists() else ""
    if text.startswith("NOT"):
        print(f"perfcast: tracking: {text}", file=sys.stderr)
