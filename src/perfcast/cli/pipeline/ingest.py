"""Copy the files of one source, verified by sha256, to a folder: from the cache, a mirror folder or their address."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from perfcast.cli._arguments import add_shared, cache_folder, embedded_folder, mirror_folders
from perfcast.config.conf_files import read_conf


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("source")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files and manifest.json")
    parser.add_argument("--origin", type=Path, help="JSON file that records the origin of every file")
    parser.add_argument("--mirror", action="append", default=[], help="folder with copies of files; may be repeated")
    parser.add_argument("--strict", action="store_true", help="fail if the source is missing")
    parser.add_argument("--offline", action="store_true", help="do not use the network")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Ingest the source and print one line; a missing source is an error with --strict only."""
    from perfcast.data.sources.ingestion import ingest_source
    from perfcast.data.sources.source_spec import parse_source
    from perfcast.utils.io import write_json

    spec = parse_source(options.source, read_conf(options.project / "conf", "source", options.source))
    is_local = at_hand(options.source, options.project, options.mirror)
    result = ingest_source(
        spec,
        options.out,
        cache=cache_folder(options.project),
        mirrors=mirror_folders(options.mirror, options.project),
        embedded=embedded_folder(options.project),
        network=not options.offline,
        strict=options.strict,
        progress=_ProgressLines(),
    )
    if options.origin:
        origins = {file.name: file.origin for file in result.files}
        means = {"at_hand": is_local, "network": not options.offline, "strict": options.strict}
        write_json(options.origin, {**means, "status": result.status, "origins": origins})
    print(result.summary, file=sys.stderr)
    return 0


def at_hand(source: str, project: Path, mirrors: Sequence[str]) -> bool:
    """Return whether every file of a source is on this machine."""
    from perfcast.data.sources.locations import locate_source
    from perfcast.data.sources.source_spec import parse_source

    spec = parse_source(source, read_conf(project / "conf", "source", source))
    located = locate_source(
        spec, cache=cache_folder(project), mirrors=mirror_folders(mirrors, project), embedded=embedded_folder(project)
    )
    return located.is_local


class _ProgressLines:
    """Progress of downloads above 1 MB: one line on stderr per tenth, or per 5 MB if the size is unknown."""

    def __init__(self) -> None:
        self._last_step: dict[str, int] = {}

    def __call__(self, name: str, done: int, total: int | None) -> None:
        step = int(10 * done / total) if total else done // 5_000_000
        if self._last_step.get(name) != step and (total is None or total > 1_000_000):
            self._last_step[name] = step
            of_total = f" of {total / 1e6:.1f}" if total else ""
            print(f"{name}: {done / 1e6:.1f}{of_total} MB", file=sys.stderr, flush=True)
