"""Compare two results folders: changes in data, code and parameters, and the significance of each metric's change."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli import _arguments
from perfcast.cli._arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    side = "results folder (results, results/full), or git revision (tag, branch, commit) whose results DVC keeps"
    parser.add_argument("before", metavar="A", help=side)
    parser.add_argument("after", metavar="B", help="the same; differences are B - A")
    parser.add_argument("--datasets", nargs="+", default=[], help="compare these only")
    parser.add_argument("--splits", nargs="+", default=[], help="compare these only")
    parser.add_argument("--predictors", nargs="+", default=[], help="compare these only")
    parser.add_argument(
        "--resamples", type=_arguments.resamples, help="bootstrap resamples (default: those of B's evaluation)"
    )
    parser.add_argument("--all", action="store_true", help="show every metric of every task, and every file and key")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="also write a page that opens offline")
    parser.add_argument("--fail-if-worse", action="store_true", help="exit with 1 when a metric is significantly worse")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Compare and print; with --fail-if-worse, 1 where a metric is significantly worse."""
    import json

    from perfcast.evaluation.results_diff import find_changes, open_side
    from perfcast.evaluation.results_diff.diff_page import as_page
    from perfcast.evaluation.results_diff.diff_text import as_text
    from perfcast.evaluation.results_diff.metric_changes import Only
    from perfcast.utils.io import write_text

    only = Only(options.datasets, options.splits, options.predictors)
    with open_side(options.before, options.project) as before, open_side(options.after, options.project) as after:
        changes = find_changes(before, after, options.project, only=only, resamples=options.resamples)
    if options.json:
        print(json.dumps(changes.as_tree(), indent=2, ensure_ascii=False, allow_nan=False, default=str))
    else:
        print(as_text(changes, everything=options.all), end="")
    if options.html:
        write_text(options.html, as_page(changes))
        print(f"{options.html}: {options.html.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 1 if options.fail_if_worse and changes.worse else 0
