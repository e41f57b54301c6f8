"""Check that results are those pinned by a revision: equal tables, values within a tolerance."""

from __future__ import annotations

import argparse

from perfcast.cli._arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("revision", nargs="?", default="HEAD", help="tag, branch or commit that pinned results")
    parser.add_argument(
        "--worst", type=int, default=5, metavar="N", help="values to print, the largest difference first"
    )
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Compare and show; 1 when something is not reproduced."""
    from perfcast.evaluation.results_diff.reproduction import as_text, compare_with_revision

    reproduction = compare_with_revision(options.project, options.revision)
    print(as_text(reproduction, options.worst), end="")
    return 0 if reproduction.tables_equal and reproduction.within else 1
