"""Predict machines that nobody has measured.

Examples:
    perfcast predict --processor 'AMD EPYC 9755' --chips 2 \\
      --memory '24 x 64 GB DDR5-6400'
    perfcast predict machines.csv --out predictions.csv
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared, whole

if TYPE_CHECKING:
    from perfcast.inference.prediction import Predictions
    from perfcast.inference.suites import Suites

_COUNT = whole(0, 1000)
MAX_EXPLAINED = 20
"""Machines up to which predictions have a basis, unless --explain asks for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_machines(parser)
    asking.add_champion(parser)
    asking.add_prediction(parser)
    add_shared(parser, "--task")
    parser.add_argument("--nearest", type=_COUNT, default=3, metavar="N", help="measured machines that --explain shows")
    add_shared(parser, "--explain")
    parser.add_argument("--brief", action="store_true", help=f"estimates alone, as above {MAX_EXPLAINED} machines")
    add_shared(parser, "--strict")
    asking.add_output(parser, ".json, else CSV")


def run(options: argparse.Namespace) -> int:
    """Predict, and print or write."""
    from perfcast.decisions.display import format_predictions

    asking.check_out(options)
    if options.suite is None:
        options.suite = asking.BOTH
    predictions = _predict(options, asking.read_suites(options))
    counted = asking.count_words(sum(len(each.estimates) for each in predictions.machines), "estimate")
    level = asking.read_options(options).level
    total = len(predictions.machines)
    format_text = partial(format_predictions, explain=options.explain)
    return asking.finish(options, predictions, format_text, counted, level=level, total=total)


def _predict(options: argparse.Namespace, suites: Suites) -> Predictions:
    from perfcast.inference.predict import predict_machines

    tasks = asking.read_tasks(options, suites)
    entries = asking.read_entries(options, suites.first)
    many = len(entries) > MAX_EXPLAINED
    chosen = replace(asking.read_options(options), tasks=tasks)
    if options.explain or (not options.brief and (options.json or not many)):
        # the text without --explain shows neither neighbors nor drivers
        whole = bool(options.explain or options.json or options.out)
        chosen = replace(chosen, neighbors=options.nearest if whole else 0, explain=True, drivers=whole)
    measured = asking.read_user_measurements(options, entries, suites)
    return predict_machines(entries, suites, chosen, measured, strict=options.strict, progress=many)
