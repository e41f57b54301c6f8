"""List the jobs that Snakemake would run, and what changed.

The minutes are those of the last run.

Examples:
    perfcast pipeline why
    perfcast pipeline why -- --configfile conf/experiment/full.yaml
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from perfcast.cli.arguments import add_shared
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results")
    parser.add_argument("snakemake", nargs="*", metavar="ARGUMENT", help="arguments of snakemake, after --")


def run(options: argparse.Namespace) -> int:
    """Print the table of a dry run."""
    from perfcast.ops.planned_jobs import parse_plan, tabulate_plan
    from perfcast.ops.run_summary import read_seconds
    from perfcast.utils.io import read_object

    command = [sys.executable, "-m", "snakemake", "--dry-run", *options.snakemake]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise UserError("a plan must be possible", (done.stderr.strip() or done.stdout.strip())[-600:])
    jobs = parse_plan(done.stdout + done.stderr)
    if not jobs:
        print("nothing to do: all results are up to date")
        return 0
    record = options.results / "logs" / "code.json"
    print(tabulate_plan(jobs, read_seconds, read_object(record) if record.exists() else {}))
    print("minutes: of the last run, one job after another; ?: never ran")
    return 0
