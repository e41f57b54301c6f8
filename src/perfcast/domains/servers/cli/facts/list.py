"""List the facts of a CPU model, with day, source and quality.

Examples:
    perfcast facts list 'AMD EPYC 9755'
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("cpu_model", help="name, as typed on the box")
    add_shared(parser, "--facts")


def run(options: argparse.Namespace) -> int:
    """Print the facts, those that count first."""
    from perfcast.domains.servers.processors.cpu_models import list_facts
    from perfcast.domains.servers.processors.user_facts import read_user_facts
    from perfcast.utils.errors import UserError
    from perfcast.utils.terminal_tables import render_table, terminal_width

    stated = read_user_facts(options.facts) if options.facts else ()
    facts = list_facts(options.cpu_model, stated)
    if not facts:
        remedy = "`perfcast facts add` states what you know of it"
        raise UserError("a CPU model must be one that the tables know", f"{options.cpu_model!r} is not", remedy)
    rows = [
        [fact.name, f"{fact.value} {fact.unit}".strip(), str(fact.known_from)[:10], str(fact.quality), fact.source]
        for fact in facts
    ]
    print(render_table(["fact", "value", "known from", "quality", "source"], rows, terminal_width()))
    return 0
