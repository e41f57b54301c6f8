"""Check this machine and project before a run.

The checks cover software, configuration, data, space, leftovers and tracking.

Examples:
    perfcast doctor
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict

from perfcast.cli.arguments import add_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_project(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the findings; exit 1 when something is broken."""
    from rich.console import Console

    from perfcast.utils.progress import show_progress

    with show_progress() as show:
        show("imports", 0, 1)
        from perfcast.ops.doctor import BROKEN, examine, find_place, tabulate_findings

        findings = examine(find_place(options.project, os.environ), show)
    broken = sum(finding.state == BROKEN for finding in findings)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        console = Console()
        console.print(tabulate_findings(findings))
        fault = "a run would fail, or use other results than those that were made"
        console.print(f"{broken} broken: {fault}" if broken else "A run can start.")
    return int(broken > 0)
