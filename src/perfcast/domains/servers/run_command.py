"""Commands that would measure a machine: runcpu of SPEC CPU 2017 with its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from perfcast.inference.rules import Check

_SUITES = {"CINT2017rate": "intrate", "CFP2017rate": "fprate", "CINT2017speed": "intspeed", "CFP2017speed": "fpspeed"}
_SETUP = {
    "os": ("os_name", "os_version"),
    "compiler": ("compiler_vendor", "compiler_major_minor"),
    "file system": ("file_system",),
    "pointers of base": ("base_ptr",),
}


def describe_runcpu(task: str, cells: Mapping[str, Any]) -> Check | None:
    """Return the command of a reportable base run and the lines of its configuration, None for another benchmark."""
    suite = _SUITES.get(task)
    if suite is None:
        return None
    option = "copies" if task.endswith("rate") else "threads"
    cores, threads = cells.get("cores_enabled_total"), cells.get("threads_per_core")
    count = None if pd.isna(cores) else int(cores * (1 if pd.isna(threads) else threads))
    chosen = "" if count is None else f" --{option}={count}"
    lines = ["# keep the compiler flags of an example of its vendor, $SPEC/config/Example-*.cfg", "tune = base"]
    lines += ["reportable = 1", *([] if count is None else [f"{option} = {count}"])]
    for name, columns in _SETUP.items():
        values = [_format(cells[column]) for column in columns if column in cells and not pd.isna(cells[column])]
        if values:
            lines.append(f"# {name}: {' '.join(values)}")
    return Check(task, f"runcpu --config=perfcast --tune=base --reportable{chosen} {suite}", "\n".join(lines))


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
