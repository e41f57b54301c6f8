"""Description of this machine from its system and firmware, as columns of published server results.

Privacy: host names, addresses, serial numbers, asset tags and identifiers are never read. No command gets more rights
than the caller has.
"""

from __future__ import annotations

import re
from pathlib import Path

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS
from perfcast.domains.servers.hardware_info.cpu_facts import read_clocks, read_cpu_model, read_vectors
from perfcast.domains.servers.hardware_info.cpu_topology import read_caches, read_cores
from perfcast.domains.servers.hardware_info.installed_memory import read_memory
from perfcast.domains.servers.hardware_info.readings import HardwareInfo, Host, Reading, ReadingCollector
from perfcast.domains.servers.hardware_info.system_facts import (
    DMI,
    Environment,
    detect_environment,
    note_environment,
    read_operating_system,
    read_storage,
)
from perfcast.domains.servers.parsing.names import normalize_company
from perfcast.microbench import machine as lscpu
from perfcast.microbench.machine import FAILURES, Run, run_command

__all__ = ["HardwareInfo", "Reading", "read_hardware"]

_CPUINFO = "/proc/cpuinfo"
_CPUINFO_NAMES = {
    "model name": "Model name",
    "vendor_id": "Vendor ID",
    "cpu family": "CPU family",
    "flags": "Flags",
    "Features": "Flags",
    "cpu": "Model name",
}
"""Fields of /proc/cpuinfo -> fields of lscpu; `cpu` is used on POWER, `Features` on Arm."""

_CHOICES = ("compiler_vendor", "compiler_major_minor", "compiler_classic", "oneapi", "mixed_fortran", "base_ptr")
_PLACEHOLDER = re.compile(
    r"(?:to be filled|o\.e\.m|oem\b|system manufacturer|default string|not (?:specified|applicable)).*"
    r"|unknown|none|empty|n/a|x+|\W*",
    re.IGNORECASE | re.DOTALL,
)
_FIRMWARE_NAMES = {"gigabyte": "Gigabyte", "nettrix": "Nettrix", "sugon": "Sugon"}
"""Vendors whose firmware has another case than their published results."""


def read_hardware(run: Run = run_command, root: Path = Path("/")) -> HardwareInfo:
    """Read this machine.

    `run` runs a command and returns its text, or raises OSError or subprocess.SubprocessError; `root` is the root of
    the file system that /proc, /sys and /etc are read from.

    Units: those of the standard columns. Every value is within its column's bounds. The result depends only
    on `run` and `root`.
    """
    host, collector = Host(run, Path(root)), ReadingCollector(COLUMNS)
    fields, where = _processor_fields(host, collector)
    environment = detect_environment(host, fields)
    note_environment(collector, host, environment)
    read_cpu_model(collector, host, fields, where)
    read_operating_system(collector, host, fields)
    cores = read_cores(collector, host, fields, environment)
    read_clocks(collector, host, fields, environment, where)
    read_vectors(collector, fields, environment, where)
    read_caches(collector, fields, environment, cores)
    read_memory(collector, host, environment)
    read_storage(collector, host, environment)
    _read_vendor(collector, host, environment)
    collector.add_missing(_CHOICES, "the compiler is a choice, not a fact of the machine: give the one that you use")
    return collector.to_hardware_info()


def _processor_fields(host: Host, collector: ReadingCollector) -> tuple[lscpu.Fields, str]:
    """Return the fields of lscpu, or else those of /proc/cpuinfo, and their source."""
    try:
        fields = lscpu.read_fields(host.run)
    except FAILURES:
        fields = ()
    if any(name in ("Architecture", "Model name", "CPU(s)") for name, _ in fields):
        return fields, "lscpu"
    collector.add_note("lscpu (of util-linux) does not run here: with it, more values can be read")
    # the first CPU represents all
    listed = lscpu.parse_text_fields(host.read_text(_CPUINFO).partition("\n\n")[0])
    return tuple((_CPUINFO_NAMES[name], value) for name, value in listed if name in _CPUINFO_NAMES), _CPUINFO


def _read_vendor(collector: ReadingCollector, host: Host, environment: Environment) -> None:
    if environment.virtual:
        collector.add_missing(["hw_vendor"], "a virtual machine does not show the vendor of the host: give it")
        return
    text = host.read_text(f"{DMI}/sys_vendor")[:200]
    if not _PLACEHOLDER.fullmatch(text):
        name = normalize_company(text)
        collector.add("hw_vendor", _FIRMWARE_NAMES.get((name or "").casefold(), name), text, f"{DMI}/sys_vendor")
    collector.add_missing(["hw_vendor"], "the firmware does not have the vendor of the machine: give it")
