"""Print the headline of a run, and where its report and store are.

Examples:
    perfcast summary
    perfcast summary --results results/full
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results", "--project")


def run(options: argparse.Namespace) -> int:
    """Print the summary of a run."""
    from perfcast import tracking
    from perfcast.config.conf_files import known, read_conf, read_yaml
    from perfcast.config.experiment_params import read_params
    from perfcast.ops.summary import summarize_results

    conf = options.project / "conf"
    titles = {name: str(read_conf(conf, "dataset", name)["title"]) for name in known(conf, "dataset")}
    print(summarize_results(options.results, titles, read_params(options.project).preset))
    store = tracking.store_from(read_yaml(conf / "tracking" / "default.yaml"), options.project, os.environ)
    address = "off" if store is None else store.uri.replace(f"{Path.cwd()}/", "")
    print(f"report:   {options.results / 'report.html'}\ntracking: {address}   (`make ui` opens it)")
    note = options.results / "logs" / "record.txt"
    if store is not None and note.exists() and (text := note.read_text(encoding="utf-8").strip()):
        print(f"          {text}")
    return 0
