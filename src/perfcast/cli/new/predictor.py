"""Write the files of a new predictor.

They are its module, its conf, an experiment and its text in the
documentation. It works, as the mean of the training scores: put your idea in
its place.

Examples:
    perfcast new predictor mean_score
"""

from __future__ import annotations

import argparse

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", help="name in lower case with underscores")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Write the files, and print them and the next commands."""
    from perfcast.ops.new_files import write_predictor

    print(write_predictor(options.name, options.project))
    return 0
