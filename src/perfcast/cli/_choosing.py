"""What the commands that help to choose share: how forecasts are made, and where the answer goes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.cli.predict import add_measured, level_of, when_of

if TYPE_CHECKING:
    import pandas as pd

    from perfcast.forecasting import Asked, Champion


def add_asked(parser: argparse.ArgumentParser) -> None:
    """Declare how forecasts are made."""
    parser.add_argument("--level", type=float, help="level of the intervals, 0 to 1 (default: 0.9)")
    add_measured(parser)
    parser.add_argument("--when", metavar="YYYY-MM", help="when machines will be measured (default: this month)")
    parser.add_argument("--no-assume", action="store_true", help="leave unknown what nobody said")


def asked_of(options: argparse.Namespace) -> Asked:
    """Return how forecasts are to be made."""
    from perfcast.forecasting import Asked

    return Asked(level_of(options), when_of(options), not options.no_assume, 0, False)


def add_shape(parser: argparse.ArgumentParser, files: str) -> None:
    """Declare what the answer looks like, and where it goes."""
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--out", type=Path, help=f"write to this file, by its ending: {files}")


def as_json(tree: dict[str, Any]) -> str:
    """Return JSON of a person's width."""
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(frame: pd.DataFrame) -> str:
    """Return CSV with six significant digits."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def told(count: int, champion: Champion, level: float) -> str:
    """Return the line under an answer that says who says so."""
    return (
        f"{count} machines forecast by {champion.name} ({champion.schedule} schedule), {100 * level:g} % intervals; "
        "estimates are not official results"
    )
