"""Rank candidate machines by score, watts and price, with the probability that each reaches its targets."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli._prediction_options import (
    add_champion,
    add_output,
    add_prediction,
    check_ending,
    read_champion,
    read_options,
    read_user_measurements,
    report,
    write_answer,
)
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "candidates",
        type=Path,
        help="a .csv, .json or .yaml file of machines; beside what `predict` reads: name, price, watts",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="'TASK >= NUMBER'",
        help="what must be reached; may be repeated",
    )
    parser.add_argument(
        "--by",
        default="score",
        metavar="WORDS",
        help="score, watts, price, probability or tasks, joined by * and /, such as score/watt (default: score)",
    )
    parser.add_argument(
        "--weights",
        metavar="TASK=NUMBER,...",
        help="weights of the score's tasks (default: equal weights of the targets' tasks)",
    )
    parser.add_argument("--sure", type=float, metavar="P", help="rank those last that meet all targets less probably")
    parser.add_argument("--ascending", action="store_true", help="the lowest first, where less is better")
    add_champion(parser)
    add_prediction(parser)
    add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Rank, and print or write."""
    from perfcast.decisions.criteria import read_constraints, read_criterion, read_weights
    from perfcast.decisions.decision_text import format_ranking
    from perfcast.decisions.ranking import RankingRequest, rank_machines
    from perfcast.inference.machine_files import read_machines
    from perfcast.utils.terminal_tables import terminal_width

    check_ending(options, ".csv", ".json")
    if options.sure is not None and not 0 < options.sure < 1:
        raise UserError("--sure must be between 0 and 1", f"it is {options.sure:g}", "0.9 means 90 %")
    chosen = read_options(options)
    champion = read_champion(options)
    entries = read_machines(options.candidates)
    constraints = read_constraints(options.target, champion)
    weights = read_weights(options.weights, constraints, champion)
    criterion = read_criterion(options.by, champion)
    request = RankingRequest(criterion, weights, constraints, options.sure, options.ascending)
    measurements = read_user_measurements(options, [], champion)
    ranking = rank_machines(entries, champion, request, chosen, measurements=measurements, progress=len(entries) > 20)
    write_answer(options, ranking, lambda: format_ranking(ranking, terminal_width()))
    report(f"{len(entries)} machines predicted", champion.name, champion.preset, chosen.level)
    return 0
