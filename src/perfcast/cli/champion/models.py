"""Write a page and a table of the answers for every CPU model.

The folder gets models.html, which needs no server, and models.csv.

Examples:
    perfcast champion models --out build/site
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_project, add_shared
from perfcast.cli.asking import add_champion, read_champion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    add_shared(parser, "--out", out="folder of the page and its table")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Predict, and write both files."""
    from perfcast.config.conf_files import read_conf
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.decisions.known_entities import render_entities, tabulate_entities
    from perfcast.inference.prediction import as_csv
    from perfcast.utils.io import check_writable, write_text

    page, file = options.out / "models.html", options.out / "models.csv"
    champion = read_champion(options)
    for path in (page, file):
        check_writable(path)
    conf = options.project / "conf"
    dataset = read_dataset(conf, champion.dataset)
    names = [*dataset.sources.required, *dataset.sources.optional]
    sources = [{"source": name, **read_conf(conf, "source", name)} for name in names]
    table = tabulate_entities(champion, progress=True)
    write_text(page, render_entities(champion, table, dataset.title, sources, file.name))
    write_text(file, as_csv(table))
    counted = f"{table[champion.entity].nunique():,} {champion.rules.entity_name}s"
    print(f"{page}, {file.name}: {counted} by {champion.name}; estimates are not official results", file=sys.stderr)
    return 0
