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
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli import machine_arguments as machine
from perfcast.cli.answers import add_output, check_out, count_words, report, report_refused, write_answer
from perfcast.cli.arguments import number, share
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference import Champion, MachineEntry

_CRITERIA = "score, watts, price, cost, probability, tasks or derived quantities, joined by * and /: score/watt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "candidates", type=Path, nargs="?", help="a .csv, .json or .yaml file of machines; also: name, price, watts"
    )
    machine.add_machine_flags(parser)
    parser.add_argument(
        "--vary", action="append", default=[], metavar="NAME=VALUES", help="candidates without a file, as in what-if"
    )
    parser.add_argument(
        "--target", action="append", default=[], metavar="'TASK >= NUMBER'", help="to be reached; may be repeated"
    )
    parser.add_argument("--by", default="score", metavar="WORDS", help=_CRITERIA)
    parser.add_argument(
        "--weights",
        metavar="TASK=NUMBER,...",
        help="weights of the score's tasks (default: equal weights of the targets' tasks)",
    )
    parser.add_argument(
        "--sure", type=share, metavar="SHARE", help="candidates that reach the targets less probably stand last (0.5)"
    )
    parser.add_argument(
        "--price", action="append", default=[], metavar="[NAME=]NUMBER", help="of a machine; of a GPU and hour"
    )
    rate = number(0, 1e9)
    parser.add_argument("--electricity-price", type=rate, default=0.0, metavar="PRICE", help="of a kWh, in the cost")
    parser.add_argument("--years", type=number(1e-3, 100), default=1.0, metavar="N", help="years of use in the cost")
    parser.add_argument("--memory-price", type=rate, default=0.0, metavar="PRICE", help="of a GB that price leaves out")
    machine.add_champion(parser)
    machine.add_prediction(parser)
    machine.add_strict(parser)
    add_output(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Rank, and print or write."""
    from perfcast.decisions.criteria import CostRates, add_prices
    from perfcast.decisions.display import format_ranking
    from perfcast.decisions.ranking import rank_machines, read_request
    from perfcast.utils.terminal_tables import terminal_width

    check_out(options, ".csv", ".json")
    chosen = machine.read_options(options)
    champion = machine.read_champion(options)
    entries = add_prices(_read_candidates(options, champion), options.price, champion)
    typed = {name: getattr(options, name) for name in ("by", "weights", "sure")}
    rates = CostRates(**{name: getattr(options, name) for name in ("electricity_price", "years", "memory_price")})
    request = read_request(options.target, champion, **typed, rates=rates)
    measurements = machine.read_user_measurements(options, [], champion)
    names = {"measurements": measurements, "strict": options.strict, "progress": len(entries) > 20}
    ranking = rank_machines(entries, champion, request, chosen, **names)
    write_answer(options, ranking, lambda: format_ranking(ranking, terminal_width()))
    report(f"{count_words(len(ranking.candidates), 'machine')} predicted", champion.name, champion.preset, chosen.level)
    return report_refused(len(ranking.refused), len(entries))


def _read_candidates(options: argparse.Namespace, champion: Champion) -> list[MachineEntry]:
    """Return the candidates of a file, to which flags add, or those that the flags and --vary make."""
    from perfcast.decisions.variants import make_candidates, read_varied_fields
    from perfcast.inference.machine_files import add_fields

    flags = champion.rules.read_files(machine.read_machine_flags(options))
    if options.candidates is not None:
        if options.vary:
            raise UserError("candidates must be a file or --vary", "both are given", "leave one of them out")
        return add_fields(machine.read_file(options.candidates, champion), flags)
    if not options.vary:
        fact = "no file and no --vary was given"
        raise UserError("candidates must be given", fact, f"try a file, or {champion.rules.example} --vary NAME=VALUES")
    return make_candidates(flags, read_varied_fields(options.vary, champion.fields))
