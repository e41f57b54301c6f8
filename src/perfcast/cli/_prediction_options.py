"""Options of the commands that predict: champion, machines, prediction options and output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from perfcast.inference import Champion, MachineEntry, PredictOptions
    from perfcast.inference.user_measurements import UserMeasurements


_FLAGS = {
    "processor": "its name, as typed on the box: 'AMD EPYC 9755'",
    "chips": "number of processors",
    "cores": "enabled cores of each processor",
    "memory": "'24 x 64 GB DDR5-6400'",
    "os": "'SLES 15 SP6, kernel 6.4'",
    "compiler": "'AOCC 5.0'",
    "storage": "'1 x 960 GB NVMe SSD'",
}


def add_champion(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the champion."""
    parser.add_argument("--dataset", default="spec_cpu2017")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of a run (default: results)")
    parser.add_argument("--champion", type=Path, help="its folder (default: <results>/champion/<dataset>)")


def add_machines(parser: argparse.ArgumentParser) -> None:
    """Declare the ways to describe machines: a file, flags, or the hardware of this machine."""
    parser.add_argument("machines", type=Path, nargs="?", help="a .csv, .json or .yaml file of one machine or more")
    for name, meaning in _FLAGS.items():
        parser.add_argument(f"--{name}", help=meaning)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any other characteristic, such as tdp=400"
    )
    parser.add_argument("--this-machine", action="store_true", help="describe this machine, as far as it can be read")


def read_champion(options: argparse.Namespace) -> Champion:
    """Read the champion of the options."""
    from perfcast.inference.champion import load_champion

    return load_champion(options.champion or options.results / "champion" / options.dataset, options.dataset)


def read_entries(options: argparse.Namespace, champion: Champion, *, allow_empty: bool = False) -> list[MachineEntry]:
    """Return the machines of the options; flags describe one machine, or add to every machine of a file.

    `allow_empty`: no option at all is one machine without any field.
    Raises: UserError when no machine is described, or a file and a flag give the same field.
    """
    from perfcast.inference.machine_files import MachineEntry, read_machines

    flags = _read_flags(options)
    if options.machines is not None:
        return [
            MachineEntry(line, label, {**values, **_check_distinct(flags, values, label)})
            for line, label, values in read_machines(options.machines)
        ]
    if options.this_machine:
        return [MachineEntry(1, "this machine", {**_read_this_machine(champion, flags), **flags})]
    if flags or allow_empty:
        return [MachineEntry(1, "the machine", flags)]
    fact = "no file, no flag and no --this-machine was given"
    raise UserError("a machine must be described", fact, "try --processor 'EPYC 9654' --chips 2")


def _read_flags(options: argparse.Namespace) -> dict[str, object]:
    """Return the fields of the flags by name."""
    values: dict[str, object] = {name: value for name in _FLAGS if (value := getattr(options, name)) is not None}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UserError("--set must be NAME=VALUE, such as tdp=400", f"it is {text!r}")
        if name.strip() in values:
            raise UserError("a machine must give every field once", f"{name.strip()} is given twice")
        values[name.strip()] = value.strip()
    return values


def _check_distinct(flags: Mapping[str, object], values: Mapping[str, object], label: str) -> Mapping[str, object]:
    """Return the flags. Raises: UserError when the machine of a file gives one of them, too."""
    twice = [name for name in flags if values.get(name) not in (None, "")]
    if twice:
        raise UserError("a machine must give every field once", f"{label} and a flag both give {twice[0]}")
    return flags


def _read_this_machine(champion: Champion, flags: Mapping[str, object]) -> dict[str, object]:
    """Return the readings of this machine without the columns of the flags, and report them on standard error."""
    from perfcast.microbench.hardware_info import read_hardware

    hardware = read_hardware()
    flagged = champion.fields.cells(flags, "the command")
    readings = [reading for reading in hardware.readings if reading.column not in flagged]
    lines = ["read of this machine:"]
    for reading in readings:
        value = f"{reading.value:g}" if isinstance(reading.value, float) else reading.value
        lines.append(f"  {reading.column} {value} ({reading.where}: {reading.text})")
    reasons: dict[str, list[str]] = {}
    for column, reason in hardware.not_read.items():
        if column not in flagged:
            reasons.setdefault(reason, []).append(column)
    lines.append("could not be read:")
    lines += [f"  {', '.join(columns)}: {reason}" for reason, columns in reasons.items()]
    print("\n".join([*lines, *hardware.notes]), file=sys.stderr, flush=True)
    return {reading.column: reading.value for reading in readings}


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
    from perfcast.inference.predict import PredictOptions, check_level, read_month
    from perfcast.uncertainty.conformal import LEVEL

    level = LEVEL if options.level is None else check_level(options.level, "--level")
    return PredictOptions(level, read_month(options.when, "--when"), not options.no_assume, neighbors, explain)


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
