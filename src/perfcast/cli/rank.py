"""Order candidate machines by score, watts and price, with the probability that each meets its targets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli._choosing import add_asked, add_shape, as_csv, as_json, asked_of, told
from perfcast.cli._machines import add_champion, champion_of
from perfcast.cli.predict import own_of
from perfcast.errors import UserError


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
        help="what the score's tasks count (default: those of the targets alike)",
    )
    parser.add_argument("--sure", type=float, metavar="P", help="put those last that meet all targets less surely")
    parser.add_argument("--ascending", action="store_true", help="the lowest first, where less is better")
    add_champion(parser)
    add_asked(parser)
    add_shape(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Rank and print, or write."""
    from perfcast.choosing.goals import read_goals
    from perfcast.choosing.measures import read_measure, read_weights
    from perfcast.choosing.ranking import Wish, rank
    from perfcast.choosing.text import ranking_as_text
    from perfcast.describing.files import read_entries
    from perfcast.io import write_text

    if options.out is not None and options.out.suffix not in (".csv", ".json"):
        raise UserError("--out must end in .csv or .json", f"it is {options.out.name!r}")
    if options.sure is not None and not 0 < options.sure < 1:
        raise UserError("--sure must be between 0 and 1", f"it is {options.sure:g}", "0.9 means 90 %")
    asked = asked_of(options)
    champion = champion_of(options)
    entries = read_entries(options.candidates)
    goals = read_goals(options.target, champion)
    weights = read_weights(options.weights, goals, champion)
    wish = Wish(read_measure(options.by, champion), weights, goals, options.sure, options.ascending)
    ranking = rank(entries, champion, wish, asked, own=own_of(options, [], champion), progress=len(entries) > 20)
    if options.out is not None:
        text = as_json(ranking.to_dict()) if options.out.suffix == ".json" else as_csv(ranking.to_frame())
        write_text(options.out, text)
    elif options.json:
        print(as_json(ranking.to_dict()), end="")
    elif options.csv:
        print(as_csv(ranking.to_frame()), end="")
    else:
        print(ranking_as_text(ranking))
    print(told(len(entries), champion, asked.level), file=sys.stderr)
    return 0
