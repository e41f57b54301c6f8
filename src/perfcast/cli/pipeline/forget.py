"""Remove results that Snakemake did not make here.

Those of `dvc checkout` are such results; they are made again then.

Examples:
    perfcast pipeline forget
    perfcast pipeline forget --missing-sources
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--keep", action="store_true", help="keep the results instead: they are those of this revision")
    choice.add_argument("--missing-sources", action="store_true", help="forget which sources are missing instead")


def run(options: argparse.Namespace) -> int:
    """Remove what is foreign and print one line; results of the last run stay."""
    from perfcast.ops.made_here import are_made_here, record_report, remove_missing_sources, remove_results

    if options.keep:
        record_report(options.results)
    elif options.missing_sources:
        names = remove_missing_sources(options.results)
        print(f"looked for again: {', '.join(names) or 'no source is missing'}", file=sys.stderr)
    elif not are_made_here(options.results):
        removed = remove_results(options.results)
        print(f"{options.results} came from elsewhere; removed to be made again: {', '.join(removed)}", file=sys.stderr)
    return 0
