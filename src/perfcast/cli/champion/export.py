"""Write a champion as one file.

`--champion` reads it on another machine.

Examples:
    perfcast champion export --out champion.zip
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from perfcast.cli.arguments import add_project, add_shared
from perfcast.cli.asking import add_champion, check_out, find_champions, replacing
from perfcast.utils.errors import UserError

_TERMS = ("title", "license", "terms", "citation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser, facts=False)
    add_shared(parser, "--out", out="the file, which ends in .zip")
    parser.add_argument(
        "--with-scores",
        action="store_true",
        help="keep published scores that the terms of their sources do not let everybody pass on",
    )
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Export, and print what was left out."""
    from perfcast.config.conf_files import read_conf
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.inference.champion import load_champion
    from perfcast.inference.champion_archive import list_left_out, pack_champion

    def read_terms(names: Iterable[str]) -> list[dict[str, str]]:
        read = {name: read_conf(options.project / "conf", "source", name) for name in names}
        return [{"name": name, **{key: str(conf[key]) for key in _TERMS}} for name, conf in read.items()]

    check_out(options, ".zip")
    dataset, folder = next(iter(find_champions(options).items()))
    if folder.is_file():
        raise UserError("--champion must be a folder", f"{folder} is a file", "copy that file instead")
    champion = load_champion(folder, dataset)
    sources = read_dataset(options.project / "conf", champion.dataset).sources
    required = read_terms(sources.required)  # which have its scores
    left_out = None if options.with_scores else list_left_out(champion, required)
    with replacing(options.out):
        pack_champion(folder, options.out, left_out, [*required, *read_terms(sources.optional)])
    shown = f"{options.out}: {champion.name} of {champion.dataset}, {options.out.stat().st_size / 1e6:.1f} MB"
    print(shown if left_out is None else f"{shown}; {left_out.note}", file=sys.stderr)
    return 0
