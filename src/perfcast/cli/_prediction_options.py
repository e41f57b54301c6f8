"""Options of the commands that predict: how predictions are made, and where the answer goes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from perfcast.inference import Champion, MachineEntry, PredictOptions
    from perfcast.inference.user_measurements import UserMeasurements


def add_prediction(parser: argparse.ArgumentParser) -> None:
    """Declare how predictions are made."""
    parser.add_argument("--level", type=float, help="level of the intervals, 0 to 1 (default: 0.9)")
    parser.add_argument(
        "--measured",
        type=Path,
        help="scores measured of these machines or of similar ones: machines with a task and a score",
    )
    parser.add_argument("--when", metavar="YYYY-MM", help="when machines will be measured (default: this month)")
    parser.add_argument("--no-assume", action="store_true", help="leave missing values unknown")


def read_options(options: argparse.Namespace, *, neighbors: int = 0, explain: bool = False) -> PredictOptions:
    """Return the prediction options. Raises: UserError for an impossible level or month."""
    from perfcast.inference.predict import PredictOptions
    from perfcast.uncertainty.conformal import LEVEL

    level = LEVEL if options.level is None else float(options.level)
    if not 0 < level < 1:
        raise UserError("--level must be between 0 and 1", f"it is {level:g}", "0.9 means 90 %")
    return PredictOptions(level, _read_month(options.when), not options.no_assume, neighbors, explain)


def _read_month(text: str | None) -> pd.Timestamp:
    """Return the month of --when, without a text this one. Raises: UserError when it is no month."""
    import pandas as pd

    if text is None:
        return pd.Timestamp.now().normalize()
    try:
        return pd.to_datetime(text, format="%Y-%m")
    except ValueError:
        raise UserError("--when must be a month such as 2026-03", f"it is {text!r}") from None


def read_user_measurements(
    options: argparse.Namespace, entries: Sequence[MachineEntry], champion: Champion
) -> UserMeasurements | None:
    """Read the file of --measured, None without; fields that it leaves out are those of the only machine."""
    if options.measured is None:
        return None
    from perfcast.inference.machine_files import read_machines
    from perfcast.inference.user_measurements import read_measurements

    machine = dict(entries[0].values) if len(entries) == 1 else None
    return read_measurements(read_machines(options.measured), champion, machine)


def add_output(parser: argparse.ArgumentParser, files: str) -> None:
    """Declare the form of the answer, and its file."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--out", type=Path, help=f"write to this file, by its ending: {files}")


def check_ending(options: argparse.Namespace, *endings: str) -> None:
    """Refuse an --out with another ending than the given ones."""
    if options.out is not None and options.out.suffix not in endings:
        allowed = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"--out must end in {allowed}", f"it is {options.out.name!r}")


def write_answer(options: argparse.Namespace, answer: Any, format_text: Callable[[], str]) -> None:
    """Write the answer to --out as JSON or CSV, and print it as JSON, CSV or text; without --out text is the default.

    Args: `answer` has `to_dict()` and `to_frame()`.
    """
    from perfcast.utils.io import write_text

    written = options.out is not None and options.out.suffix != ".svg"
    if written:
        is_json = options.out.suffix == ".json"
        write_text(options.out, _as_json(answer.to_dict()) if is_json else _as_csv(answer.to_frame()))
    if options.json:
        print(_as_json(answer.to_dict()), end="")
    elif options.csv:
        print(_as_csv(answer.to_frame()), end="")
    elif not written:
        print(format_text())


def _as_json(tree: dict[str, Any]) -> str:
    """Return indented JSON."""
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _as_csv(frame: pd.DataFrame) -> str:
    """Return CSV with six significant digits."""
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def report(counted: str, champion: str, preset: str, level: float) -> None:
    """Print the line under an answer on standard error: the count, the champion and the level."""
    print(
        f"{counted} by {champion} ({preset} preset), {100 * level:g} % intervals; estimates are not official results",
        file=sys.stderr,
    )
