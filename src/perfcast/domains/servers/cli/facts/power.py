"""Write the watts of a thread by family, measured or estimated.

The table is that of coefficients which Cloud Carbon Footprint reads.

Examples:
    perfcast facts power --power results/power/champion/spec_power \\
      --out coefficients-use.csv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from perfcast.cli.arguments import add_shared
from perfcast.cli.asking import add_power, check_out, replacing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_power(parser)
    parser.set_defaults(power=Path("results/power/champion/spec_power"))
    add_shared(parser, "--out", out="the file, which ends in .csv")


def run(options: argparse.Namespace) -> int:
    """Estimate, and write the table."""
    from perfcast.domains.servers.processors.power_coefficients import tabulate_coefficients
    from perfcast.inference.champion import load_champion
    from perfcast.inference.prediction import as_csv
    from perfcast.utils.io import write_text

    check_out(options, ".csv")
    power = load_champion(options.power).require_power()
    table = tabulate_coefficients(power, progress=True)
    with replacing(options.out):
        # its first column, which has no name, is the number of the row
        write_text(options.out, as_csv(table.rename_axis("").reset_index()))
    measured = int((table["Results"] > 0).sum())
    counted = f"{measured} families measured, {len(table) - measured} estimated by {power.name}"
    print(f"{options.out}: {counted} ({power.basis}); estimates are not official results", file=sys.stderr)
    return 0
