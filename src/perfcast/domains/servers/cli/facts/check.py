"""Check the tables of facts, and print the share of verified facts.

It checks columns, days, values, families and duplicates, and compares your
facts with those of the project.

Examples:
    perfcast facts check
    perfcast facts check --facts facts.csv
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--facts")


def run(options: argparse.Namespace) -> int:
    """Print shares and problems; 2 where there is a problem."""
    from perfcast.domains.servers.processors import user_facts
    from perfcast.domains.servers.processors.facts import read_facts

    problems = [problem for name in user_facts.TABLES for problem in user_facts.find_fact_problems(read_facts(name))]
    problems += user_facts.find_unresolved()
    shares = user_facts.measure_verified_shares()
    verified, total = zip(*shares.values(), strict=True)
    shares["all tables"] = (sum(verified), sum(total))
    for name, (known, count) in shares.items():
        print(f"{name}: {count} facts, {100 * known / count:.0f} % verified")
    if options.facts:
        facts = user_facts.read_user_facts(options.facts)
        problems += user_facts.find_fact_problems(facts)
        print(f"{options.facts} has facts: {len(facts)}, CPU models: {len({fact.cpu_model for fact in facts})}")
        for difference in user_facts.find_contradictions(facts):
            print(f"note: {difference}; yours counts")
    for problem in problems:
        print(f"perfcast facts check: {problem}", file=sys.stderr)
    return 2 if problems else 0
