"""Gather the metrics of all datasets in one file for DVC.

Examples:
    perfcast pipeline metrics results/evaluation/host_gemm --out metrics.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("evaluations", type=Path, nargs="+", metavar="evaluation", help="folders of evaluations")
    add_shared(parser, "--out")


def run(options: argparse.Namespace) -> int:
    """Write {dataset: {split: {predictor: {task: {metric: value}}}}}."""
    from perfcast.evaluation import metrics_tree, read_evaluation
    from perfcast.utils.io import write_json
    from perfcast.utils.result_digests import record_digests

    evaluations = [read_evaluation(folder) for folder in options.evaluations]
    write_json(options.out, {evaluation.dataset: metrics_tree(evaluation) for evaluation in evaluations})
    record_digests(options.out)
    return 0
