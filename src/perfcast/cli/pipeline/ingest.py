"""Copy the files of one source to a folder, verified by sha256.

The origin is the cache, a mirror folder or the address of the source.

Examples:
    perfcast pipeline ingest host_gemm --out results/raw/host_gemm
    perfcast pipeline ingest help --out results/raw/help --mirror ~/data --offline
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("source", help="name of a file in conf/source")
    add_shared(parser, "--out", "--project", out="folder for the files and manifest.json")
    parser.add_argument("--origin", type=Path, metavar="FILE", help="JSON file that records the origin of every file")
    parser.add_argument(
        "--mirror", action="append", default=[], metavar="FOLDER", help="folder with copies of files; may be repeated"
    )
    parser.add_argument("--strict", action="store_true", help="fail if the source is missing")
    parser.add_argument("--offline", action="store_true", help="do not use the network")


def run(options: argparse.Namespace) -> int:
    """Ingest the source and print one line; a missing source is an error with --strict only."""
    from perfcast.config.conf_files import read_conf
    from perfcast.sources.ingestion import ingest_source
    from perfcast.sources.locations import find_places, locate_source
    from perfcast.sources.source_spec import parse_source
    from perfcast.utils.io import write_json

    spec = parse_source(options.source, read_conf(options.project / "conf", "source", options.source))
    places = find_places(options.project, options.mirror, os.environ)
    is_local = locate_source(spec, **places, earlier=options.out).is_local
    result = ingest_source(spec, options.out, **places, network=not options.offline, strict=options.strict)
    if options.origin:
        origins = {file.name: file.origin for file in result.files}
        means = {"at_hand": is_local, "network": not options.offline, "strict": options.strict}
        write_json(options.origin, {**means, "status": result.status, "origins": origins})
    print(result.summary, file=sys.stderr)
    return 0
