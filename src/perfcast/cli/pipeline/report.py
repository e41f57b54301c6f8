"""Write the report: an index, and a page per dataset beside it.

Examples:
    perfcast pipeline report --results results --out results/report.html
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared, parse_experiment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results", "--out", "--project", "--experiment", out="index page, a file of HTML")
    parser.add_argument("--cards", type=Path, metavar="FOLDER", help="folder for a model card per dataset, as Markdown")


def run(options: argparse.Namespace) -> int:
    """Collect, render, write."""
    from perfcast.config.dataset_conf import read_datasets
    from perfcast.config.predictor_conf import read_predictor_labels
    from perfcast.report.render_page import write_report
    from perfcast.report.report_context import collect

    params, conf = parse_experiment(options), options.project / "conf"
    datasets = read_datasets(conf)
    titles = {name: dataset.title for name, dataset in datasets.items()}
    sources = {name: [*entry.sources.required, *entry.sources.optional] for name, entry in datasets.items()}
    predictor_labels = read_predictor_labels(conf)
    context = collect(options.results, params, titles=titles, sources=sources, predictor_labels=predictor_labels)
    write_report(context, options.out, options.cards)
    for page in [options.out, *sorted(options.out.with_suffix("").glob("*.html"))]:
        print(f"{page}: {page.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 0
