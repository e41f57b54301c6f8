"""Record finished trainings and champions in MLflow.

What the store has already is left alone.

Examples:
    perfcast pipeline record --results results
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli.arguments import add_shared

if TYPE_CHECKING:
    from perfcast.tracking import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results", "--project")
    parser.add_argument("--trainings", action="store_true", help="record the trainings alone")
    parser.add_argument(
        "--note", type=Path, metavar="FILE", help="write the outcome to a file, and succeed if the store fails"
    )


def run(options: argparse.Namespace) -> int:
    """Record; a store that cannot be used is one line, and costs no result."""
    from perfcast import tracking
    from perfcast.config.conf_files import read_yaml
    from perfcast.utils.errors import UserError
    from perfcast.utils.io import write_text

    try:
        conf = read_yaml(options.project / "conf" / "tracking" / "default.yaml")
        store = tracking.store_from(conf, options.project, os.environ)
        off = "off: conf/tracking/default.yaml has enabled: false"
        outcome = off if store is None else f"{_record(store, options)} new runs recorded"
    except Exception as error:  # whatever a store, a driver or a server raises
        reason = tracking.explain_failure(error)
        if options.note is None:
            raise UserError("the tracking store must be usable", reason) from error
        outcome = f"NOT recorded: {reason}; `perfcast pipeline record` catches up"
    print(f"tracking: {outcome}", file=sys.stderr)
    if options.note is not None:
        try:
            write_text(options.note, f"{outcome}\n")
        except OSError as error:  # as on a full disk: the line above says it all
            print(f"tracking: {options.note} is not written: {tracking.explain_failure(error)}", file=sys.stderr)
    return 0


def _record(store: Store, options: argparse.Namespace) -> int:
    from perfcast.evaluation import metrics_tree, read_evaluation
    from perfcast.tracking.recording import ResultsToRecord, record_results

    evaluations = [read_evaluation(path.parent) for path in options.results.glob("evaluation/*/summary.json")]
    scores = {evaluation.dataset: metrics_tree(evaluation) for evaluation in evaluations}
    return record_results(store, ResultsToRecord(options.results, scores), trainings_only=options.trainings)
