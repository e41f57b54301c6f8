"""Write the one HTML file that everybody can read, and record it beside the trainings."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.cli._common import add_project
from perfcast.config import known, read_conf, read_yaml
from perfcast.errors import UserError
from perfcast.inference.machine_files import read_json_text

if TYPE_CHECKING:
    from perfcast.report import ReportContext
    from perfcast.tracking import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--experiment", type=_experiment, help="the experiment as JSON (default: params.yaml)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cards", type=Path, help="folder for a model card per data set, as Markdown")
    add_project(parser)


def _experiment(text: str) -> dict[str, Any]:
    value = read_json_text(text, "--experiment")
    if not isinstance(value, dict):
        raise UserError("--experiment must be one JSON object", f"it is {text[:60]!r}")
    return value


def run(options: argparse.Namespace) -> int:
    """Collect, render, write, record."""
    from perfcast import tracking
    from perfcast.io import atomic_folder, write_text
    from perfcast.report import cards, collect, render

    params = options.experiment or read_yaml(options.project / "params.yaml")
    conf = options.project / "conf"
    datasets = {name: read_conf(conf, "dataset", name) for name in known(conf, "dataset")}
    context = collect(
        options.results,
        params,
        titles={name: str(one["title"]) for name, one in datasets.items()},
        sources={
            name: [*one["sources"]["required"], *one["sources"].get("optional", [])] for name, one in datasets.items()
        },
    )
    write_text(options.out, render(context))
    if options.cards is not None:
        with atomic_folder(options.cards) as folder:
            for name, text in cards(context).items():
                write_text(folder / f"{name}.md", text)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    store = tracking.store_from(read_yaml(conf / "tracking" / "default.yaml"), options.project, os.environ)
    if store is not None:
        _record(store, context, options.results, options.out)
    return 0


def _record(store: Store, context: ReportContext, results: Path, report: Path) -> None:
    """Log report and figures to the invocation's run, and one run per predictor with its metrics on every split.

    The latter are what the UI compares side by side: a training knows one split only.
    """
    from perfcast import tracking
    from perfcast.evaluation import metrics_tree

    for part in context.datasets:
        experiment = f"perfcast/{part.name}"
        with tracking.parent_run(store, experiment) as record, tempfile.TemporaryDirectory() as temporary:
            # under the names of what they are: both folders have the data set's, and would be one among the artifacts
            for kind in ("figures", "evaluation"):
                if (results / kind / part.name).is_dir():
                    hidden = shutil.ignore_patterns(".*")
                    shutil.copytree(results / kind / part.name, Path(temporary) / kind, ignore=hidden)
            record.log_artifacts(report, Path(temporary) / "figures", Path(temporary) / "evaluation")
        by_predictor: dict[str, dict[str, float]] = {}
        for split, predictors in metrics_tree(part.evaluation).items():
            for predictor, tasks in predictors.items():
                by_predictor.setdefault(predictor, {}).update(_flat(split, tasks))
        for predictor, metrics in sorted(by_predictor.items()):
            tags = {"perfcast.kind": "comparison", "dataset": part.name, "predictor": predictor}
            with tracking.start_run(store, experiment, f"{predictor}: all splits", tags) as record:
                record.log_params({"predictor": predictor, "schedule": context.params["schedule"]})
                record.log_metrics(metrics)


def _flat(split: str, tasks: dict[str, Any]) -> dict[str, float]:
    """Return {split/task/metric: value} of the protocol's two leading metrics."""
    return {
        f"{split}/{task}/{metric}": value
        for task, metrics in tasks.items()
        for metric, value in metrics.items()
        if metric in ("mape", "medape")
    }
