"""Check the files of one dataset for leakage, and fail on any.

Examples:
    perfcast pipeline leakage host_gemm \\
      --table results/features/host_gemm.parquet \\
      --standard results/standard/host_gemm.parquet \\
      --folds results/splits/host_gemm --runs results/runs/host_gemm \\
      --splits random --predictors ridge --out leakage.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared, chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--table", "--standard", "--runs", "--splits", "--predictors", "--out")
    add_shared(parser, "--seed", "--project")
    parser.add_argument("--folds", type=Path, required=True, help="folder of the dataset's splits")


def run(options: argparse.Namespace) -> int:
    """Check one dataset; 2 and one line per finding where something leaks."""
    from perfcast.evaluation.leakage import check_leakage, leakage_errors
    from perfcast.experiment.leakage_control import collect_artifacts
    from perfcast.utils.io import write_json
    from perfcast.utils.result_digests import record_digests

    files = chosen(options, "table", "standard", "folds", "runs", "splits", "predictors", "seed")
    artifacts = collect_artifacts(options.project / "conf", **files)
    report = check_leakage(artifacts)
    write_json(options.out, report)
    record_digests(options.out)
    lines = leakage_errors(report)
    for line in lines:
        print(f"perfcast pipeline leakage: {line}", file=sys.stderr)
    return 2 if lines else 0
