"""Make a miniature project of generated data to try things on.

Examples:
    perfcast pipeline fake demo --rows 600
    perfcast pipeline fake /tmp/demo --project ~/perfcast
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared, whole
from perfcast.utils.packaged_project import default_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", type=Path, help="new folder for mirror/, conf/, params.yaml, Snakefile, workflow/")
    parser.add_argument("--rows", type=whole(1, 1_000_000), default=600, metavar="N", help="rows per source")
    add_shared(parser, "--seed", "--project")
    parser.set_defaults(project=default_project(Path()))


def run(options: argparse.Namespace) -> int:
    """Write the project."""
    from perfcast.testing.miniature import make_project

    make_project(options.project, options.out, rows=options.rows, seed=options.seed)
    print(f"made {options.out}: generated data, no real results. Run it: cd {options.out} && snakemake")
    return 0
