"""Let the next run look for missing sources again.

Examples:
    perfcast pipeline forget
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results")


def run(options: argparse.Namespace) -> int:
    """Remove the manifests of missing sources and print their names."""
    from perfcast.utils.io import read_object, remove_path

    manifests = sorted((options.results / "raw").glob("*/manifest.json"))
    missing = [path for path in manifests if read_object(path, "status")["status"] == "missing"]
    for path in missing:
        remove_path(path)
    names = ", ".join(path.parent.name for path in missing)
    print(f"looked for again: {names or 'no source is missing'}", file=sys.stderr)
    return 0
