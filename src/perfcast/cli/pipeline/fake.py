"""Make a miniature project to try things on: generated sources and a conf/ that accepts them."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli import _arguments
from perfcast.cli._arguments import add_shared
from perfcast.utils.packaged_project import default_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", type=Path, help="folder to make: mirror/, conf/, params.yaml, Snakefile, workflow/")
    parser.add_argument(
        "--rows", type=_arguments.whole(1, 1_000_000), default=600, help="rows per source (default 600)"
    )
    add_shared(parser, "--seed --project")
    parser.set_defaults(project=default_project(Path()))


def run(options: argparse.Namespace) -> int:
    """Write the project."""
    from perfcast.testing.miniature import make_project

    make_project(options.project, options.out, rows=options.rows, seed=options.seed)
    print(f"made {options.out}: generated data, no real results. Run it: cd {options.out} && snakemake")
    return 0
