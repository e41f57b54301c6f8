"""Fetch the champion of this release.

Where there is no run, `perfcast predict` answers with it.

Examples:
    perfcast champion download
    perfcast champion download --from Downloads/perfcast-spec_cpu2017.zip
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    places = "its file or folder (default: folders of PERFCAST_MIRROR, then the address of the release)"
    parser.add_argument("--from", dest="given", type=Path, metavar="PATH", help=places)


def run(options: argparse.Namespace) -> int:
    """Fetch the file, and name it."""
    from perfcast.sources.released_champion import download_champion

    path = download_champion(options.given)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, as it was released", file=sys.stderr)
    return 0
