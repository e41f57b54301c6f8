"""Write the headline metrics that `dvc metrics` shows.

They are those of the champion and of the best baseline, per dataset and split.

Examples:
    perfcast pipeline headline results/champion/host_gemm \\
      --metrics results/metrics.json --baselines nearest --out results/headline
"""

from __future__ import annotations

import argparse
from pathlib import Path

from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("champions", type=Path, nargs="+", metavar="FOLDER", help="folders of champions")
    parser.add_argument("--metrics", type=Path, required=True, metavar="FILE", help="the metrics of every predictor")
    parser.add_argument(
        "--baselines", nargs="*", default=[], metavar="PREDICTOR", help="predictors to compare the champion with"
    )
    add_shared(parser, "--out")


def run(options: argparse.Namespace) -> int:
    """Write <out>/<dataset>/<split>.json."""
    from perfcast.evaluation.evaluation_files import headline_metrics
    from perfcast.utils.io import atomic_folder, read_object, write_json
    from perfcast.utils.result_digests import record_beside

    metrics = read_object(options.metrics)
    about = [read_object(folder / "about.json", "dataset", "predictor") for folder in options.champions]
    champions = {entry["dataset"]: entry["predictor"] for entry in about}
    with atomic_folder(options.out) as folder:
        for (dataset, split), values in headline_metrics(metrics, champions, options.baselines).items():
            path = folder / dataset / f"{split}.json"
            path.parent.mkdir(exist_ok=True)
            write_json(path, values)
    record_beside(options.out)
    return 0
