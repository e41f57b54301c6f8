"""Forecast machines that nobody has measured with the champion of a data set."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.cli import _numbers
from perfcast.cli._machines import add_champion, add_machines, champion_of, entries_of
from perfcast.errors import UserError

if TYPE_CHECKING:
    from perfcast.describing.files import Entry
    from perfcast.forecasting import Champion
    from perfcast.forecasting.own_measurements import OwnMeasurements

EXPLAINED = 20
"""Machines up to which every forecast is explained where nothing else is asked: a batch is a table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_machines(parser)
    add_champion(parser)
    parser.add_argument(
        "--level", type=float, help="level of the intervals, 0 to 1 (default: 0.9, that of the protocol)"
    )
    add_measured(parser)
    parser.add_argument("--when", metavar="YYYY-MM", help="when the machine will be measured (default: this month)")
    parser.add_argument("--no-assume", action="store_true", help="leave unknown what nobody said")
    parser.add_argument(
        "--neighbours",
        type=_numbers.whole(0, 1000),
        default=3,
        metavar="N",
        help="measured machines shown (default: 3)",
    )
    parser.add_argument("--brief", action="store_true", help=f"estimates alone; so it is above {EXPLAINED} machines")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON, with all that is known of every forecast")
    shape.add_argument("--csv", action="store_true", help="print CSV, one line per machine and task")
    parser.add_argument("--out", type=Path, help="write CSV (or JSON, where the name ends so) to this file")


def run(options: argparse.Namespace) -> int:
    """Forecast and print, or write."""
    from perfcast.forecasting import Asked, describe
    from perfcast.forecasting.batch import forecast_in_batches
    from perfcast.forecasting.text import as_text

    level, when = level_of(options), when_of(options)
    champion = champion_of(options)
    entries = entries_of(options, champion)
    described = describe(entries, champion)
    many = len(described.frame) > EXPLAINED
    brief = options.brief or (many and not options.json)
    asked = Asked(level, when, not options.no_assume, 0 if brief else options.neighbours, not brief)
    own = own_of(options, entries, champion)
    answer = forecast_in_batches(described, champion, asked, own, progress=many)
    if options.out is not None:
        _write(options.out, answer)
    elif options.json:
        print(json.dumps(answer.to_dict(), indent=1, ensure_ascii=False))
    elif options.csv:
        print(_csv(answer), end="")
    else:
        print(as_text(answer))
    print(
        f"{sum(len(one.estimates) for one in answer)} estimates by {answer.champion} ({answer.schedule} schedule), "
        f"{100 * level:g} % intervals; estimates are not official results",
        file=sys.stderr,
    )
    return 0


def add_measured(parser: argparse.ArgumentParser) -> None:
    """Declare where measurements of one's own are read from."""
    parser.add_argument(
        "--measured",
        type=Path,
        help="scores measured of these machines or of their siblings: machines with a task and a score",
    )


def own_of(options: argparse.Namespace, entries: Sequence[Entry], champion: Champion) -> OwnMeasurements | None:
    """Read the measurements, None without; what they leave out is that of the machine, where there is only one."""
    if options.measured is None:
        return None
    from perfcast.describing.files import read_entries
    from perfcast.forecasting.own_measurements import measured_by_oneself

    machine = dict(entries[0][2]) if len(entries) == 1 else None
    return measured_by_oneself(read_entries(options.measured), champion, machine)


def level_of(options: argparse.Namespace) -> float:
    """Return the level that is asked for. Raises: UserError when it is none."""
    from perfcast.uncertainty.conformal import LEVEL

    level = LEVEL if options.level is None else float(options.level)
    if not 0 < level < 1:
        raise UserError("--level must be between 0 and 1", f"it is {level:g}", "0.9 means 90 %")
    return level


def when_of(options: argparse.Namespace):  # type: ignore[no-untyped-def]
    """Return the month that is asked for, this one where none is. Raises: UserError when it is no month."""
    import pandas as pd

    if options.when is None:
        return pd.Timestamp.now().normalize()
    try:
        return pd.to_datetime(options.when, format="%Y-%m")
    except ValueError:
        raise UserError("--when must be a month such as 2026-03", f"it is {options.when!r}") from None


def _csv(answer) -> str:  # type: ignore[no-untyped-def]
    return str(answer.to_frame().to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _write(out: Path, answer) -> None:  # type: ignore[no-untyped-def]
    from perfcast.io import atomic_path

    text = json.dumps(answer.to_dict(), indent=1, ensure_ascii=False) if out.suffix == ".json" else _csv(answer)
    with atomic_path(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
