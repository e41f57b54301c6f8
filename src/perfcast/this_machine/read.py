"""Read the machine at hand as standard columns of published server results, as far as that is permitted and honest.

Host names, addresses, serial numbers, asset tags and identifiers are never read. Nothing is run with more rights than
the caller has.
"""

from __future__ import annotations

import re
from pathlib import Path

from perfcast.datasets._spec_cpu2017_columns import COLUMNS
from perfcast.datasets._spec_cpu2017_vendors import canonical_company
from perfcast.this_machine import lscpu
from perfcast.this_machine._caches import read_caches
from perfcast.this_machine._clocks import read_clocks
from perfcast.this_machine._cores import read_cores
from perfcast.this_machine._host import DMI, Surroundings, note_surroundings, surroundings
from perfcast.this_machine._memory import read_memory
from perfcast.this_machine._operating_system import read_operating_system
from perfcast.this_machine._part import read_part
from perfcast.this_machine._storage import read_storage
from perfcast.this_machine._vectors import read_vectors
from perfcast.this_machine.commands import FAILURES, Host, Run, run_command
from perfcast.this_machine.reading import Gathering, Reading, ThisMachine

__all__ = ["Reading", "ThisMachine", "read_this_machine"]

_CPUINFO = "/proc/cpuinfo"
_CPUINFO_NAMES = {
    "model name": "Model name",
    "vendor_id": "Vendor ID",
    "cpu family": "CPU family",
    "flags": "Flags",
    "Features": "Flags",
    "cpu": "Model name",
}
"""Fields of the kernel's list -> lscpu's; `cpu` is POWER's, `Features` Arm's."""

_CHOSEN = ("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi", "mixed_fortran", "base_ptr")
_PLACEHOLDER = re.compile(
    r"(?:to be filled|o\.e\.m|oem\b|system manufacturer|default string|not (?:specified|applicable)).*"
    r"|unknown|none|empty|n/a|x+|\W*",
    re.IGNORECASE | re.DOTALL,
)
_FIRMWARE_NAMES = {"gigabyte": "Gigabyte", "nettrix": "Nettrix", "sugon": "Sugon"}
"""Makers that sign their firmware in other letters than their published results."""


def read_this_machine(run: Run = run_command, root: Path = Path("/")) -> ThisMachine:
    """Read this machine.

    `run` runs a command and returns its text, or raises OSError or subprocess.SubprocessError; `root` is the root of
    the file system that /proc, /sys and /etc are read from.

    Units: those of the standard columns. Every value is within its column's bounds. The answer depends on nothing
    but what `run` and `root` give.
    """
    host, gathering = Host(run, Path(root)), Gathering(COLUMNS)
    fields, where = _processor_fields(host, gathering)
    around = surroundings(host, fields)
    note_surroundings(gathering, host, around)
    read_part(gathering, host, fields, where)
    read_operating_system(gathering, host, fields)
    cores = read_cores(gathering, host, fields, around)
    read_clocks(gathering, host, fields, around, where)
    read_vectors(gathering, fields, around, where)
    read_caches(gathering, host, fields, around, cores)
    read_memory(gathering, host, around)
    read_storage(gathering, host, around)
    _read_vendor(gathering, host, around)
    gathering.miss(_CHOSEN, "the compiler is a choice, not a fact of the machine: give the one that will be used")
    return gathering.result()


def _processor_fields(host: Host, gathering: Gathering) -> tuple[lscpu.Fields, str]:
    """Return the fields of lscpu, or what the kernel's list of processors says of them, and where they are from."""
    try:
        fields = lscpu.read_fields(host.run)
    except FAILURES:
        fields = ()
    if any(name in ("Architecture", "Model name", "CPU(s)") for name, _ in fields):
        return fields, "lscpu"
    gathering.note("lscpu (of util-linux) does not run here: with it more could be read")
    # The first processor stands for all.
    listed = lscpu.fields_of_text(host.text(_CPUINFO).partition("\n\n")[0])
    return tuple((_CPUINFO_NAMES[name], value) for name, value in listed if name in _CPUINFO_NAMES), _CPUINFO


def _read_vendor(gathering: Gathering, host: Host, around: Surroundings) -> None:
    if around.virtual:
        gathering.miss(["hw_vendor"], "a virtual machine does not see who made the host: give it")
        return
    text = host.text(f"{DMI}/sys_vendor")[:200]
    if not _PLACEHOLDER.fullmatch(text):
        name = canonical_company(text)
        gathering.put("hw_vendor", _FIRMWARE_NAMES.get((name or "").casefold(), name), text, f"{DMI}/sys_vendor")
    gathering.miss(["hw_vendor"], "the firmware does not say who sells the machine: give it")
