"""Append the facts of one CPU model to your table.

Examples:
    perfcast facts add 'Xeon 6799P' --set cores_per_chip=96 --set tdp_w=400 \\
      --known-from 2026-11-23 --source 'data sheet'
    perfcast facts add 'Foo 1' --family Turin --set base_mhz=2400 \\
      --known-from 2026-11-23 --source 'press kit'
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("cpu_model", help="name, as typed on the box")
    parser.add_argument(
        "--set", action="append", required=True, metavar="NAME=VALUE", help="a fact, such as tdp_w=400; repeat it"
    )
    parser.add_argument("--family", metavar="NAME", help="family (default: that of the name)")
    parser.add_argument("--known-from", required=True, metavar="YYYY-MM-DD", help="day of the announcement")
    parser.add_argument("--source", required=True, metavar="TEXT", help="publication that states the facts")
    parser.add_argument("--quality", default="1", choices=["0", "1", "2"], help="0 from memory, 1 one source, 2 two")
    add_shared(parser, "--facts", facts="your table of facts (default: facts.csv)")
    parser.set_defaults(facts=Path("facts.csv"))


def run(options: argparse.Namespace) -> int:
    """Check the line and append it."""
    from perfcast.domains.servers.processors.user_facts import append_fact_row
    from perfcast.utils.errors import UserError

    row = {name: getattr(options, name) or "" for name in ("cpu_model", "family", "known_from", "source", "quality")}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError("--set must be NAME=VALUE, such as tdp_w=400", f"it is {text[:60]!r}", "correct it")
        if name in row:
            raise UserError("--set must give every fact once", f"{name[:60]!r} is given twice", "leave one out")
        row[name] = value
    append_fact_row(options.facts, row)
    print(f"{options.facts}: {options.cpu_model} added; commands use it with --facts {shlex.quote(str(options.facts))}")
    return 0
