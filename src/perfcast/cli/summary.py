"""Print the headline table, what was left out, and where the report and the tracking store are."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from perfcast.cli._common import add_project
from perfcast.config import read_conf, read_yaml
from perfcast.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--results", type=Path, default=Path("results"))
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Print what a person wants to know after a run."""
    from perfcast import tracking
    from perfcast.evaluation import headline, read_evaluation
    from perfcast.io import read_object

    available = options.results / "raw" / "available.json"
    if not available.exists():
        raise UserError("there must be results to summarise", f"{options.results} has none", "run `make run` first")
    schedule = read_yaml(options.project / "params.yaml")["schedule"]
    found = read_object(available, "datasets", "left_out")
    for name in found["datasets"]:
        folder = options.results / "evaluation" / name
        if folder.is_dir():
            print(f"\n== {read_conf(options.project / 'conf', 'dataset', name)['title']} ({name}) ==")
            print(headline(read_evaluation(folder)))
    print(
        "\nMAPE / MedAPE in %, average over the tests of the data set; forecasts are estimates, not official results."
    )
    if schedule == "quick" and options.results.name == "results":
        print("Schedule: quick (one seed, short training). `make full` runs the full experiment.")
    for manifest in sorted((options.results / "raw").glob("*/manifest.json")):
        about = read_object(manifest, "status", "source", "reason", "remedy")
        if about["status"] != "present":
            print(f"left out: source {about['source']}: {about['reason']}; {about['remedy']}")
    for name, absent in found["left_out"].items():
        print(f"left out: data set {name} (needs {', '.join(absent)})")
    tracking_conf = read_yaml(options.project / "conf" / "tracking" / "default.yaml")
    store = tracking.store_from(tracking_conf, options.project, os.environ)
    print(f"report:   {options.results / 'report.html'}")
    print(f"tracking: {'off' if store is None else _short(store.uri)}   (`make ui` opens it)")
    return 0


def _short(uri: str) -> str:
    """Return the URI relative to the working folder where it lies below it."""
    return uri.replace(f"{Path.cwd()}/", "")
