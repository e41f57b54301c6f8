"""Check that results are those pinned by a git revision.

Tables must have equal bytes, metrics be within a tolerance.

Examples:
    perfcast reproduced
    perfcast reproduced HEAD~1 --worst 20
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_shared, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("revision", nargs="?", default="HEAD", help="tag, branch or commit that pinned results")
    parser.add_argument(
        "--worst", type=whole(0, 1_000_000), default=5, metavar="N", help="values to print, largest difference first"
    )
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Compare and show; 1 when something is not reproduced."""
    from perfcast.evaluation.reproduction import compare_with_revision
    from perfcast.utils.progress import show_progress

    with show_progress() as show:
        reproduced, text = compare_with_revision(options.project, options.revision, options.worst, show)
    print(text, end="")
    return 0 if reproduced else 1
