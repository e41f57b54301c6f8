"""Write the report as one HTML file, and record it beside the trainings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from perfcast.cli._arguments import add_shared
from perfcast.config.conf_files import known, read_conf, read_yaml
from perfcast.config.predictor_conf import read_predictor_labels
from perfcast.inference.machine_files import read_json_text
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results --out --project")
    parser.add_argument("--experiment", type=_experiment, help="the experiment as JSON (default: params.yaml)")
    parser.add_argument("--cards", type=Path, help="folder for a model card per dataset, as Markdown")


def _experiment(text: str) -> dict[str, Any]:
    value = read_json_text(text, "--experiment")
    if not isinstance(value, dict):
        raise UserError("--experiment must be one JSON object", f"it is {text[:60]!r}")
    return value


def run(options: argparse.Namespace) -> int:
    """Collect, render, write, record."""
    from perfcast import tracking
    from perfcast.evaluation import metrics_tree
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
    predictor_labels = read_predictor_labels(conf)
    context = collect(options.results, params, titles=titles, sources=sources, predictor_labels=predictor_labels)
    write_text(options.out, render(context))
    if options.cards is not None:
        with atomic_folder(options.cards) as folder:
            for name, text in cards(context).items():
                write_text(folder / f"{name}.md", text)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    store = tracking.store_from(read_yaml(conf / "tracking" / "default.yaml"), options.project, os.environ)
    if store is not None:
        metrics = {part.name: metrics_tree(part.evaluation) for part in context.datasets}
        tracking.record_report(store, options.out, options.results, metrics, params["preset"])
    return 0
