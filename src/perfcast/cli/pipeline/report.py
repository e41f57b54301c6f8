"""Write the report as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli._arguments import add_shared
from perfcast.config.conf_files import known, read_conf, read_yaml
from perfcast.config.predictor_conf import read_predictor_titles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results --out --project --experiment")
    parser.add_argument("--cards", type=Path, help="folder for a model card per dataset, as Markdown")


def run(options: argparse.Namespace) -> int:
    """Collect, render, write."""
    from perfcast.report.model_card import cards
    from perfcast.report.render_page import render
    from perfcast.report.report_context import collect
    from perfcast.utils.io import atomic_folder, write_text

    params = options.experiment or read_yaml(options.project / "params.yaml")
    conf = options.project / "conf"
    datasets = {name: read_conf(conf, "dataset", name) for name in known(conf, "dataset")}
    titles = {name: str(conf_entry["title"]) for name, conf_entry in datasets.items()}
    sources = {
        name: [*conf_entry["sources"]["required"], *conf_entry["sources"].get("optional", [])]
        for name, conf_entry in datasets.items()
    }
    predictor_titles = read_predictor_titles(conf)
    context = collect(options.results, params, titles=titles, sources=sources, predictor_titles=predictor_titles)
    write_text(options.out, render(context))
    if options.cards is not None:
        with atomic_folder(options.cards) as folder:
            for name, text in cards(context).items():
                write_text(folder / f"{name}.md", text)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 0
