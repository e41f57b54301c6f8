"""Copy the files of one source, checked by sha256, from the cache, a mirror folder or its address."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from perfcast.cli._common import add_project, cache_folder, embedded_folder, mirror_folders
from perfcast.config import read_conf


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("source")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files and manifest.json")
    parser.add_argument("--origin", type=Path, help="file to note where the bytes came from")
    parser.add_argument("--mirror", action="append", default=[], help="folder to look in; may be repeated")
    parser.add_argument("--strict", action="store_true", help="a source that cannot be had is an error")
    parser.add_argument("--offline", action="store_true", help="do not ask the network")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Ingest; a missing source is one line, and no error unless --strict."""
    from perfcast.io import write_json
    from perfcast.sources import ingest, parse_source

    spec = parse_source(options.source, read_conf(options.project / "conf", "source", options.source))
    mirrors = mirror_folders(options.mirror, options.project)
    local = at_hand(options.source, options.project, options.mirror)
    result = ingest(
        spec,
        options.out,
        cache=cache_folder(options.project),
        mirrors=mirrors,
        embedded=embedded_folder(options.project),
        network=not options.offline,
        strict=options.strict,
        progress=_Progress(),
    )
    if options.origin:
        origins = {file.name: file.origin for file in result.files}
        write_json(options.origin, {"at_hand": local, "status": result.status, "origins": origins})
    print(result.line, file=sys.stderr)
    return 0


def at_hand(source: str, project: Path, mirrors: Sequence[str]) -> bool:
    """Return whether every file of a source can be had without the network."""
    from perfcast.sources import locate, parse_source

    spec = parse_source(source, read_conf(project / "conf", "source", source))
    location = locate(
        spec,
        cache=cache_folder(project),
        mirrors=mirror_folders(mirrors, project),
        embedded=embedded_folder(project),
    )
    return bool(location.found)


class _Progress:
    """Print the progress of long downloads on stderr, at most once in ten per cent."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}

    def __call__(self, name: str, done: int, total: int | None) -> None:
        tenth = int(10 * done / total) if total else done // 5_000_000
        if self.shown.get(name) != tenth and (total is None or total > 1_000_000):
            self.shown[name] = tenth
            total_size = f" of {total / 1e6:.1f}" if total else ""
            print(f"{name}: {done / 1e6:.1f}{total_size} MB", file=sys.stderr, flush=True)
