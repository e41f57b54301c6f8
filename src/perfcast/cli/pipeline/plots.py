"""Draw the plots of one dataset.

Examples:
    perfcast pipeline plots host_gemm --evaluation results/evaluation/host_gemm \\
      --plots coverage --out plots
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--out", "--project")
    parser.add_argument("--evaluation", type=Path, required=True, help="folder of the evaluation")
    parser.add_argument("--plots", nargs="*", default=[], metavar="PLOT", help="names of plots")


def run(options: argparse.Namespace) -> int:
    """Draw every plot that applies."""
    from perfcast.config.predictor_conf import read_predictor_labels
    from perfcast.evaluation import read_evaluation
    from perfcast.report.plots.drawing import draw_all
    from perfcast.report.report_context import hardest_split_first
    from perfcast.utils.io import atomic_folder

    labels = read_predictor_labels(options.project / "conf")
    with atomic_folder(options.out) as folder:
        draw_all(hardest_split_first(read_evaluation(options.evaluation)), folder, options.plots, labels)
    return 0
