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
    parser.add_argument(
        "--level", type=float, help="level of the intervals, 0 to 1 (default: 0.9, that of the protocol)"
    )
    parser.add_argument("--when", metavar="YYYY-MM", help="when the machine will be measured (default: this month)")
    parser.add_argument("--out", type=Path, help="write CSV to this file (default: print a table)")


def run(options: argparse.Namespace) -> int:
    """Forecast and print, or write, one line per machine and task."""
    import pandas as pd

    from perfcast.errors import UserError
    from perfcast.forecast import Asked, forecast_file, read_champion
    from perfcast.intervals import LEVEL
    from perfcast.io import atomic_path, read_json
    from perfcast.schema import read_table

    level = LEVEL if options.level is None else options.level
    if not 0 < level < 1:
        raise UserError("--level must be between 0 and 1", f"it is {level:g}", "0.9 means 90 %")
    try:
        when = pd.Timestamp.now().normalize() if options.when is None else pd.to_datetime(options.when, format="%Y-%m")
    except ValueError:
        raise UserError("--when must be a month such as 2026-03", f"it is {options.when!r}") from None
    champion = read_champion(options.champion or options.results / "champion" / options.dataset, options.dataset)
    standard = read_table(options.results / "standard" / f"{options.dataset}.parquet")
    manifests = sorted((options.results / "raw").glob("*/manifest.json"))
    raw = {path.parent.name: path.parent for path in manifests if read_json(path)["status"] == "present"}
    forecasts = forecast_file(options.machines, standard, champion, raw, Asked(level, when))
    if options.out is None:
        print(forecasts.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.4g}"))
    else:
        with atomic_path(options.out) as temporary:
            forecasts.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")
    print(
        f"{len(forecasts)} estimates by {champion.name} ({champion.schedule} schedule), low to high: "
        f"{100 * level:g} % interval; estimates are not official results, and the more features are missing "
        "the less they are worth",
        file=sys.stderr,
    )
    return 0
