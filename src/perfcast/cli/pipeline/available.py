"""List the datasets that can be built from the ingested sources.

Examples:
    perfcast pipeline available host_gemm --raw results/raw \\
      --out results/raw/available.json
"""

from __future__ import annotations

import argparse
import sys

from perfcast.cli.arguments import add_shared
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("datasets", nargs="+", metavar="dataset", help="names of files in conf/dataset")
    add_shared(parser, "--raw", "--out", "--project")


def run(options: argparse.Namespace) -> int:
    """Write the list; print one line per dataset that is left out."""
    from perfcast.config.dataset_conf import read_dataset
    from perfcast.sources.locations import present_sources
    from perfcast.utils.result_digests import record_digests

    present, left_out = [], {}
    for name in options.datasets:
        required = read_dataset(options.project / "conf", name).sources.required
        absent = [source for source in required if source not in present_sources(options.raw, required)]
        if absent:
            left_out[name] = absent
            print(f"dataset {name} is left out: missing {', '.join(absent)}", file=sys.stderr)
        else:
            present.append(name)
    if not present:
        raise UserError("at least one dataset must have its sources", "every one lacks some", "see perfcast sources")
    write_json(options.out, {"datasets": present, "left_out": left_out})
    record_digests(options.out)
    return 0
