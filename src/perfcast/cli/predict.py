"""Forecast machines that nobody has measured, described in a CSV file, with the champion of a data set."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("machines", type=Path, help="CSV file: one machine a line, standard columns by name")
    parser.add_argument("--dataset", default="spec_cpu2017")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of a run (default: results)")
    parser.add_argument("--champion", type=Path, help="its folder (default: <results>/champion/<dataset>)")
    parser.add_argument("--out", type=Path, help="write CSV to this file (default: print a table)")


def run(options: argparse.Namespace) -> int:
    """Forecast and print, or write, one line per machine and task."""
    from perfcast.forecast import forecast_file, read_champion
    from perfcast.io import atomic_path, read_json
    from perfcast.schema import read_table

    champion = read_champion(options.champion or options.results / "champion" / options.dataset, options.dataset)
    standard = read_table(options.results / "standard" / f"{options.dataset}.parquet")
    manifests = sorted((options.results / "raw").glob("*/manifest.json"))
    raw = {path.parent.name: path.parent for path in manifests if read_json(path)["status"] == "present"}
    forecasts = forecast_file(options.machines, standard, champion, raw)
    if options.out is None:
        print(forecasts.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}"))
    else:
        with atomic_path(options.out) as temporary:
            forecasts.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")
    print(
        f"{len(forecasts)} estimates by {champion.name} ({champion.schedule} schedule); estimates are not official "
        "results, and the more features are missing the less they are worth",
        file=sys.stderr,
    )
    return 0
