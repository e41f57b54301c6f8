"""Options of the commands that are told machines: which champion answers, and what the machines are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perfcast.errors import UserError

if TYPE_CHECKING:
    from perfcast.describing.files import Entry
    from perfcast.forecasting import Champion, Described

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
    """Declare where the champion lies."""
    parser.add_argument("--dataset", default="spec_cpu2017")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of a run (default: results)")
    parser.add_argument("--champion", type=Path, help="its folder (default: <results>/champion/<dataset>)")


def add_machines(parser: argparse.ArgumentParser) -> None:
    """Declare the ways to describe machines: a file, flags, or the machine at hand."""
    parser.add_argument("machines", type=Path, nargs="?", help="a .csv, .json or .yaml file of one machine or more")
    for name, meaning in _FLAGS.items():
        parser.add_argument(f"--{name}", help=meaning)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any other characteristic, such as tdp=400"
    )
    parser.add_argument("--this-machine", action="store_true", help="describe the machine at hand, as far as it tells")


def champion_of(options: argparse.Namespace) -> Champion:
    """Read the champion that is meant."""
    from perfcast.forecasting import load_champion

    return load_champion(options.champion or options.results / "champion" / options.dataset, options.dataset)


def machines_of(options: argparse.Namespace, champion: Champion) -> Described:
    """Return the machines that are meant, understood; see `entries_of`."""
    from perfcast.forecasting import describe

    return describe(entries_of(options, champion), champion)


def entries_of(options: argparse.Namespace, champion: Champion, *, or_nothing: bool = False) -> list[Entry]:
    """Return what was said of the machines that are meant; flags describe one, or add to every machine of a file.

    `or_nothing`: a machine of which nothing is said is one, too.

    Raises: UserError when no machine is described, or a file and a flag say the same thing.
    """
    from perfcast.describing.files import read_entries

    said = flags_of(options)
    if options.machines is not None:
        entries = [
            (line, where, {**own, **_new(said, own, where)}) for line, where, own in read_entries(options.machines)
        ]
    elif options.this_machine:
        entries = [(1, "this machine", {**this_machine(champion, said), **said})]
    elif said or or_nothing:
        entries = [(1, "the machine", said)]
    else:
        raise UserError(
            "a machine must be described",
            "no file, no flag and no --this-machine was given",
            "try --processor 'EPYC 9654' --chips 2",
        )
    return entries


def flags_of(options: argparse.Namespace) -> dict[str, object]:
    """Return what the flags say of the machine."""
    said: dict[str, object] = {name: value for name in _FLAGS if (value := getattr(options, name)) is not None}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UserError("--set must be NAME=VALUE, such as tdp=400", f"it is {text!r}")
        if name.strip() in said:
            raise UserError("a machine must say a thing once", f"{name.strip()} is given twice")
        said[name.strip()] = value.strip()
    return said


def _new(said: Mapping[str, object], own: Mapping[str, object], where: str) -> Mapping[str, object]:
    twice = [name for name in said if own.get(name) not in (None, "")]
    if twice:
        raise UserError("a machine must say a thing once", f"{where} and a flag both give {twice[0]}")
    return said


def this_machine(champion: Champion, said: Mapping[str, object]) -> dict[str, object]:
    """Read the machine at hand, tell on standard error what was read and what could not be, and return what was.

    What is `said` beside it comes first: it is left out of what was read.
    """
    from perfcast.microbench.hardware_info import read_hardware

    read = read_hardware()
    already = champion.vocabulary.cells(said, "the command")
    kept = {one.column: one for one in read.readings if one.column not in already}
    lines = [
        f"  {one.column} {one.value:g}" if isinstance(one.value, float) else f"  {one.column} {one.value}"
        for one in kept.values()
    ]
    told = [f"{line} ({one.where}: {one.text})" for line, one in zip(lines, kept.values(), strict=True)]
    reasons: dict[str, list[str]] = {}
    for column, why in read.not_read.items():
        if column not in already:
            reasons.setdefault(why, []).append(column)
    missing = [f"  {', '.join(columns)}: {why}" for why, columns in reasons.items()]
    print(
        "\n".join(["read of this machine:", *told, "could not be read:", *missing, *read.notes]),
        file=sys.stderr,
        flush=True,
    )
    return {column: one.value for column, one in kept.items()}
