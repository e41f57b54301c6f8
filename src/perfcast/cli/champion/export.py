"""Write a champion as one file, with the results that it learned.

`--champion` reads it on another machine. That of SPEC CPU2026 has that of
SPEC CPU2017 inside.

Examples:
    perfcast champion export --out champion.zip
    perfcast champion export --dataset spec_cpu2026 --out both.zip
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli.arguments import add_project, add_shared
from perfcast.cli.asking import add_champion, check_out, find_champions, replacing
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference import Champion

_TERMS = ("title", "license", "terms", "citation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser, facts=False)
    add_shared(parser, "--out", out="the file, which ends in .zip")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Export, and name the file."""
    from perfcast.inference.champion_archive import pack_champion
    from perfcast.inference.champion_files import load_champion

    check_out(options, ".zip")
    dataset, folder = next(iter(find_champions(options).items()))
    if folder.is_file():
        raise UserError("--champion must be a folder", f"{folder} is a file", "copy that file instead")
    champion = load_champion(folder, dataset)
    with replacing(options.out):
        pack_champion(folder, options.out, _read_terms(champion, options.project / "conf"))
    size = options.out.stat().st_size / 1e6
    print(f"{options.out}: {champion.name} of {champion.dataset}, {size:.1f} MB", file=sys.stderr)
    return 0


def _read_terms(champion: Champion, conf: Path) -> list[dict[str, str]]:
    """Return the terms of the sources of a champion and of the one that it rests on."""
    from perfcast.config.conf_files import read_conf
    from perfcast.config.dataset_conf import read_dataset

    champions = [champion, *([champion.base.champion] if champion.base else [])]
    sources = [read_dataset(conf, each.dataset).sources for each in champions]
    names = dict.fromkeys(name for each in sources for name in (*each.required, *each.optional))
    read = {name: read_conf(conf, "source", name) for name in names}
    return [{"name": name, **{key: str(source[key]) for key in _TERMS}} for name, source in read.items()]
