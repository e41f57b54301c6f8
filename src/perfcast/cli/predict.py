"""Predict machines that nobody has measured with the champion of a dataset."""

from __future__ import annotations

import argparse

from perfcast.cli import _arguments
from perfcast.cli._prediction_options import (
    add_champion,
    add_machines,
    add_output,
    add_prediction,
    read_champion,
    read_entries,
    read_options,
    read_user_measurements,
    report,
    write_answer,
)

MAX_EXPLAINED = 20
"""Machines up to which every prediction is explained; more machines are one table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_machines(parser)
    add_champion(parser)
    add_prediction(parser)
    parser.add_argument(
        "--nearest", type=_arguments.whole(0, 1000), default=3, metavar="N", help="measured machines shown (default: 3)"
    )
    parser.add_argument("--brief", action="store_true", help=f"estimates alone, as above {MAX_EXPLAINED} machines")
    add_output(parser, ".json, else CSV")


def run(options: argparse.Namespace) -> int:
    """Predict, and print or write."""
    from perfcast.inference.parse import parse_machines
    from perfcast.inference.predict import predict_machines
    from perfcast.inference.prediction import format_predictions
    from perfcast.utils.terminal_tables import terminal_width

    explained = read_options(options, neighbors=options.nearest, explain=True)
    champion = read_champion(options)
    entries = read_entries(options, champion)
    machines = parse_machines(entries, champion)
    many = len(entries) > MAX_EXPLAINED
    brief = options.brief or (many and not options.json)
    chosen = read_options(options) if brief else explained
    measurements = read_user_measurements(options, entries, champion)
    predictions = predict_machines(machines, champion, chosen, measurements, progress=many)
    write_answer(options, predictions, lambda: format_predictions(predictions, terminal_width()))
    count = sum(len(prediction.estimates) for prediction in predictions)
    report(f"{count} estimates", predictions.champion, predictions.preset, chosen.level)
    return 0
