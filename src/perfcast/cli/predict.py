"""Predict machines that nobody has measured.

Examples:
    perfcast predict --processor 'AMD EPYC 9755' --chips 2 \\
      --memory '24 x 64 GB DDR5-6400'
    perfcast predict machines.csv --out predictions.csv
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from perfcast.cli import machine_arguments as machine
from perfcast.cli.answers import add_output, check_out, count_words, report, report_refused, write_answer
from perfcast.cli.arguments import add_shared, whole

MAX_EXPLAINED = 20
"""Machines up to which every prediction is explained; more machines are one table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    machine.add_machines(parser)
    machine.add_champion(parser)
    machine.add_prediction(parser)
    add_shared(parser, "--task")
    parser.add_argument("--nearest", type=whole(0, 1000), default=3, metavar="N", help="measured machines shown")
    parser.add_argument("--brief", action="store_true", help=f"estimates alone, as above {MAX_EXPLAINED} machines")
    add_shared(parser, "--strict")
    add_output(parser, ".json, else CSV")


def run(options: argparse.Namespace) -> int:
    """Predict, and print or write."""
    from perfcast.inference.predict import predict_batch
    from perfcast.inference.prediction_text import format_predictions

    check_out(options)
    chosen = machine.read_options(options)
    champion = machine.read_champion(options)
    chosen = replace(chosen, tasks=machine.read_tasks(options, champion))
    entries = machine.read_entries(options, champion)
    many = len(entries) > MAX_EXPLAINED
    if not options.brief and (options.json or not many):
        chosen = replace(chosen, neighbors=options.nearest, explain=True)
    measurements = machine.read_user_measurements(options, entries, champion)
    predictions = predict_batch(entries, champion, chosen, measurements, strict=options.strict, progress=many)
    write_answer(options, predictions, format_predictions)
    count = sum(len(prediction.estimates) for prediction in predictions)
    report(count_words(count, "estimate"), predictions.champion, predictions.preset, chosen.level)
    return report_refused(len(predictions.refused), len(predictions.machines))
