"""Rank candidate machines by score, watts, price and probability.

The probability is that of reaching all targets.

Examples:
    perfcast rank machines.csv --by score/cost --electricity-price 0.25 \\
      --target 'CFP2017rate >= 900' --sure 0.9
    perfcast rank --dataset llm_serving --model llama-3.1-70b --batch 32 \\
      --input 2048 --output 256 --vary gpu=H100,H200 \\
      --vary tensor-parallel=2,4,8 --target 'ttft <= 500' \\
      --by tokens_per_second_per_gpu
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli import asking
from perfcast.cli.arguments import add_shared, number, share
from perfcast.cli.arguments import chosen as picked
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.decisions.variants import VariedField
    from perfcast.inference import Champion, MachineEntry

_CRITERIA = "score, low, price, cost, watts, a task or a derived quantity; score/price, score/cost or score/watts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "candidates", type=Path, nargs="?", help="a .csv, .json or .yaml file of machines; also: name, price, watts"
    )
    asking.add_machine_flags(parser)
    parser.add_argument(
        "--vary", action="append", default=[], metavar="NAME=VALUES", help="candidates without a file, as in what-if"
    )
    parser.add_argument(
        "--target", action="append", default=[], metavar="'TASK >= NUMBER'", help="to be reached; may be repeated"
    )
    parser.add_argument("--by", default="score", metavar="QUANTITY", help=_CRITERIA)
    parser.add_argument(
        "--sure", type=share, metavar="SHARE", help="candidates that reach the targets less probably stand last (0.5)"
    )
    rate = number(0, 1e9)
    help_text = "of a kWh, in the cost"
    parser.add_argument("--electricity-price", type=rate, default=0.0, metavar="PRICE", help=help_text)
    parser.add_argument("--years", type=number(1e-3, 100), default=1.0, metavar="N", help="years of use in the cost")
    asking.add_champion(parser)
    asking.add_prediction(parser)
    add_shared(parser, "--strict")
    asking.add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Rank, and print or write."""
    from perfcast.decisions.criteria import choose_by_targets, read_request
    from perfcast.decisions.display import format_ranking
    from perfcast.decisions.ranking import rank_machines

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    if options.target and options.suite is None:
        options.suite = asking.BOTH
        suites = choose_by_targets(options.target, asking.read_suites(options))
    else:
        suites = asking.read_suites(options)
    entries = _read_candidates(options, suites.first)
    request = read_request(options.target, suites, **picked(options, "by", "sure", "electricity_price", "years"))
    measured = asking.read_user_measurements(options, [], suites)
    names = {"measured": measured, "strict": options.strict, "progress": len(entries) > 20}
    ranking = rank_machines(entries, suites, request, chosen, **names)
    counted = f"{asking.count_words(len(ranking.candidates), 'machine')} predicted"
    return asking.finish(options, ranking, format_ranking, counted, level=chosen.level, total=len(entries))


def _read_candidates(options: argparse.Namespace, champion: Champion) -> list[MachineEntry]:
    """Return the candidates of a file, to which flags add, or those that the flags and --vary make."""
    from perfcast.decisions.variants import read_varied_fields
    from perfcast.inference.machine_files import add_fields

    flags = champion.rules.names.read_files(asking.read_machine_flags(options))
    if options.candidates is not None:
        if options.vary:
            raise UserError("candidates must be a file or --vary", "both are given", "leave one of them out")
        return add_fields(asking.read_file(options.candidates, champion), flags)
    if not options.vary:
        fact = "no file and no --vary was given"
        example = champion.rules.presentation.example
        raise UserError("candidates must be given", fact, f"try a file, or {example} --vary NAME=VALUES")
    return make_candidates(flags, read_varied_fields(options.vary, champion.fields))


def make_candidates(values: Mapping[str, object], varied: Sequence[VariedField]) -> list[MachineEntry]:
    """Return a machine in all combinations of varied values, numbered from 1 and named after them.

    Raises: UserError when a field is given and varied.
    """
    names = {field.name for field in varied}
    twice = [name for name in values if name.strip().lower() in names]
    if twice:
        fact = f"{twice[0]} is given and varied"
        raise UserError("a machine must give every field once", fact, "leave one of them out")
    from perfcast.decisions.criteria import MAX_NAME_LETTERS
    from perfcast.decisions.variants import combinations
    from perfcast.inference.machine_files import NAME, make_entry

    entries = []
    for line, points in enumerate(combinations(varied), start=1):
        chosen = {field.name: point.text for field, point in zip(varied, points, strict=True)}
        label = ", ".join(f"{name} {text}" for name, text in chosen.items())
        named = {NAME: label[:MAX_NAME_LETTERS], **values, **chosen}
        entries.append(make_entry(line, label, named)._replace(label=label))
    return entries
