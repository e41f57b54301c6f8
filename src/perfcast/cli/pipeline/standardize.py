"""Standardize the raw files of a dataset into one table.

Examples:
    perfcast pipeline standardize host_gemm --raw results/raw \\
      --table host_gemm.parquet --rejected rejected.csv --quality quality.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast import plugins
from perfcast.cli.arguments import add_shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "dataset", "--raw", "--project")
    parser.add_argument("--table", type=Path, required=True, help="standard table to write")
    parser.add_argument("--rejected", type=Path, required=True, help="CSV file of rejected rows to write")
    parser.add_argument("--quality", type=Path, required=True, help="JSON file of data quality to write")
    parser.add_argument(
        "--published-until",
        metavar="YYYY-MM",
        help="leave later results out, if the dataset can",
    )


def run(options: argparse.Namespace) -> int:
    """Standardize one dataset."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.data.standardized import write_standardized
    from perfcast.sources.locations import present_sources
    from perfcast.utils.result_digests import record_digests

    conf = read_dataset(options.project / "conf", options.dataset)
    raw = present_sources(options.raw, (*conf.sources.required, *conf.sources.optional))
    build = plugins.load_function(conf.target, f"_target_ of {options.dataset}")
    choices = {"published_until": options.published_until}
    result = build(raw, {**conf.options, **{key: choices[key] for key in choices if key in conf.options}})
    write_standardized(result, options.table, options.rejected, options.quality)
    record_digests(options.table, options.rejected, options.quality)
    print(
        f"{options.dataset}: {result.rows_in} rows in = {len(result.table.frame)} kept + "
        f"{result.rows_merged} merged + {len(result.rejected)} rejected",
        file=sys.stderr,
    )
    return 0
