"""Options of the commands that describe machines: the champion, and the machines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference import Champion, MachineEntry

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
