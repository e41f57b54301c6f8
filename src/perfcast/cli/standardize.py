"""Make one tidy table of a data set's raw files, with its rejected rows and its quality."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast import plugins
from perfcast.cli._common import add_project
from perfcast.config import read_dataset
from perfcast.io import read_object


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("dataset")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the ingested sources")
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--rejected", type=Path, required=True)
    parser.add_argument("--quality", type=Path, required=True)
    parser.add_argument("--published-until", metavar="YYYY-MM", help="for data sets that have this option")
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Standardise one data set."""
    from perfcast.data.quality import write_standardized

    conf = read_dataset(options.project / "conf", options.dataset)
    raw = {
        source: options.raw / source
        for source in (*conf.sources.required, *conf.sources.optional)
        if read_object(options.raw / source / "manifest.json", "status")["status"] == "present"
    }
    module = plugins.load("datasets", options.dataset)
    given = {"published_until": options.published_until}
    result = module.build(raw, {**conf.options, **{key: given[key] for key in given if key in conf.options}})
    write_standardized(result, options.table, options.rejected, options.quality)
    print(
        f"{options.dataset}: {result.rows_in} rows in = {len(result.table.frame)} kept + "
        f"{result.rows_merged} merged + {len(result.rejected)} rejected",
        file=sys.stderr,
    )
    return 0
