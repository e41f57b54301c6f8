"""Print times and memory peaks of the jobs of the last run.

Examples:
    perfcast pipeline times --results results
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_shared
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results")
    parser.add_argument("--since", type=float, metavar="SECONDS", help="only jobs that ended after it, since 1970")


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    from perfcast.ops.run_summary import as_text, read_jobs

    jobs = read_jobs(options.results, options.since or 0.0)
    if jobs.empty and options.since:
        return 0  # a run with nothing to do
    if jobs.empty:
        raise UserError("times come from a run", f"there are none in {options.results / 'benchmarks'}", "run snakemake")
    print(as_text(jobs))
    return 0
