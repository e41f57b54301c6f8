"""Compare two results: data, code, parameters, and every metric.

Each side is a results folder (results, results/full), or a git revision (tag,
branch, commit) whose results DVC keeps. A metric's change has a significance.

Examples:
    perfcast results compare results/full results
    perfcast results compare HEAD results --fail-if-worse
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared, resamples


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("before", metavar="A", help="results folder, or git revision whose results DVC keeps")
    parser.add_argument("after", metavar="B", help="the same; differences are B - A")
    for names in ("datasets", "splits", "predictors"):
        parser.add_argument(f"--{names}", nargs="+", default=[], metavar="NAME", help=f"compare these {names} only")
    parser.add_argument("--resamples", type=resamples, metavar="N", help="bootstrap resamples (default: those of B)")
    parser.add_argument("--all", action="store_true", help="show every metric of every task, and every file and key")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="also write a page that opens offline")
    parser.add_argument("--fail-if-worse", action="store_true", help="exit with 1 when a metric is significantly worse")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Compare and print; with --fail-if-worse, 1 where a metric is significantly worse."""
    from perfcast.evaluation.results_diff import find_changes, open_side
    from perfcast.evaluation.results_diff.diff_page import as_page
    from perfcast.evaluation.results_diff.diff_text import as_text
    from perfcast.evaluation.results_diff.metric_changes import Only
    from perfcast.utils.io import write_text
    from perfcast.utils.progress import show_progress

    only = Only(options.datasets, options.splits, options.predictors)
    folder = options.project
    with (
        show_progress() as show,
        open_side(options.before, folder) as before,
        open_side(options.after, folder) as after,
    ):
        changes = find_changes(before, after, folder, only=only, resamples=options.resamples, progress=show)
    if options.json:
        print(json.dumps(changes.as_tree(), indent=2, ensure_ascii=False, allow_nan=False, default=str))
    else:
        print(as_text(changes, everything=options.all), end="")
    if options.html:
        write_text(options.html, as_page(changes))
        print(f"{options.html}: {options.html.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 1 if options.fail_if_worse and changes.worse else 0
