"""Check this machine and project before a run: software, configuration, data, space, leftovers, tracking."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from perfcast.cli._arguments import add_shared, cache_folder, embedded_folder, mirror_folders
from perfcast.utils.packaged_project import default_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--project")
    parser.set_defaults(project=default_project(Path()))
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the findings; exit 1 when something is broken."""
    from dataclasses import asdict

    from perfcast.config.conf_files import read_yaml
    from perfcast.config.experiment_params import validate
    from perfcast.ops.doctor import BROKEN, ProjectPlace, examine
    from perfcast.utils.errors import UserError

    if not options.project.is_dir():
        raise UserError(
            "--project must be a folder", f"there is no folder {options.project}", "name a clone of perfcast"
        )
    try:
        params = validate(read_yaml(options.project / "params.yaml"), options.project / "conf")
    except UserError:  # finding of the findings
        params = None
    place = ProjectPlace(
        project=options.project,
        cache=cache_folder(options.project),
        mirrors=mirror_folders(params.mirrors if params else (), options.project),
        embedded=embedded_folder(options.project),
        params=params,
    )
    findings = examine(place)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        _show(findings)
    return int(any(finding.state == BROKEN for finding in findings))


def _show(findings) -> None:  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.table import Table

    from perfcast.ops.doctor import BROKEN, CARE

    colors = {BROKEN: "bold red", CARE: "yellow"}
    table = Table(box=None, pad_edge=False)
    for heading in ("", "state", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(
            finding.what, f"[{colors.get(finding.state, 'green')}]{finding.state}[/]", finding.fact, finding.remedy
        )
    console = Console()
    console.print(table)
    broken = sum(finding.state == BROKEN for finding in findings)
    console.print(f"{broken} broken: a run would fail" if broken else "A run can start.")
