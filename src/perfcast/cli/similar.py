"""Find measured machines that are like a described one, and say in what they differ."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from perfcast.cli._choosing import add_shape, as_csv, as_json
from perfcast.cli._machines import add_champion, add_machines, champion_of, machines_of
from perfcast.errors import UserError

_MOST = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_machines(parser)
    parser.add_argument("--count", type=int, default=10, metavar="N", help="results for each task (default: 10)")
    parser.add_argument("--task", action="append", default=[], help="this task only; may be repeated")
    parser.add_argument("--no-assume", action="store_true", help="leave unknown what nobody said")
    add_champion(parser)
    add_shape(parser, ".csv or .json")


def run(options: argparse.Namespace) -> int:
    """Find and print, or write."""
    from perfcast.choosing.resembling import resemble
    from perfcast.choosing.text import resemblance_as_text
    from perfcast.forecasting.tasks import TaskNames
    from perfcast.io import write_text

    if not 1 <= options.count <= _MOST:
        raise UserError(f"--count must be between 1 and {_MOST}", f"it is {options.count}")
    if options.out is not None and options.out.suffix not in (".csv", ".json"):
        raise UserError("--out must end in .csv or .json", f"it is {options.out.name!r}")
    champion = champion_of(options)
    names = TaskNames(champion)
    tasks = list(dict.fromkeys(names.get(text, "--task") for text in options.task))
    described = machines_of(options, champion)
    found = resemble(described, champion, count=options.count, tasks=tasks, assume=not options.no_assume)
    if options.out is not None:
        write_text(options.out, _json(found) if options.out.suffix == ".json" else _csv(found))
    elif options.json:
        print(_json(found), end="")
    elif options.csv:
        print(_csv(found), end="")
    else:
        print("\n\n".join(resemblance_as_text(one) for one in found))
    print(f"{sum(len(one.similar) for one in found)} measured results of {champion.dataset}", file=sys.stderr)
    return 0


def _json(found: Any) -> str:
    return as_json({"machines": [one.to_dict() for one in found]})


def _csv(found: Any) -> str:
    import pandas as pd

    rows = [
        {
            "line": one.line,
            "machine": one.machine,
            "task": each.task,
            "target": each.target,
            "score": each.measured.score,
            "unit": each.unit,
            "distance": each.measured.distance,
            "measured": each.measured.machine,
            "published": each.measured.published,
            "result": each.measured.result,
            "differing": each.differing,
            "differences": "; ".join(f"{d.column}: {d.own} -> {d.theirs}" for d in each.differences),
        }
        for one in found
        for each in one.similar
    ]
    return as_csv(pd.DataFrame(rows))
