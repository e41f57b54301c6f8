"""Show every source: location or reason of absence, size, license.

Examples:
    perfcast sources
"""

from __future__ import annotations

import argparse
import os

from perfcast.cli.arguments import add_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    from perfcast.config.conf_files import read_conf, read_yaml
    from perfcast.config.experiment_params import validate
    from perfcast.sources.locations import find_places, tabulate_sources
    from perfcast.sources.source_spec import parse_source

    params = validate(read_yaml(options.project / "params.yaml"), options.project / "conf")
    specs = [parse_source(name, read_conf(options.project / "conf", "source", name)) for name in params.sources]
    rows = tabulate_sources(specs, find_places(options.project, params.mirrors, os.environ))
    table = Table(title="Sources", title_justify="left")
    for heading in rows[0]:
        table.add_column(str(heading).capitalize(), overflow="fold")
    for row in rows:
        table.add_row(*[str(value) for value in row.values()])
    Console().print(table)
    return 0
