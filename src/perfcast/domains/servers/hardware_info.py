"""Description of this machine from its system and firmware, as columns of published server results.

Privacy: no reading holds a host name, an address, a serial number, an asset tag or an identifier. No command gets more
rights than the caller has.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from perfcast.domains import read_table
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS
from perfcast.domains.servers.parsing.memory import snap_to_grade
from perfcast.domains.servers.parsing.names import normalize_company
from perfcast.domains.servers.parsing.software import parse_operating_system
from perfcast.domains.servers.parsing.text_normalization import find_kind, read_rules
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import look_up_facts
from perfcast.microbench import machine as lscpu
from perfcast.microbench.machine import FAILURES, MAX_CHARACTERS, Run, run_command
from perfcast.schema.table import Kind

_DECLARED = {column.name: column for column in COLUMNS}
_SHOWN = 120
_DMI = "/sys/class/dmi/id"
_MEMINFO = "/proc/meminfo"
_MOUNTS = "/proc/mounts"
_PER_CORE = {
    "L1d cache": "l1d_kb",
    "L1i cache": "l1i_kb",
    "L2 cache": "l2_kb_per_core",
}
_ADVICE = {row["column"]: row["advice"] for row in read_table(__package__, "reading_advice.csv")}
"""Column -> what to do where it cannot be read. Published results have a running rate only when it differs."""

_VENDORS = read_rules("processor vendors")
_TYPES = read_rules("firmware module types")
"""Vendor text of a processor or its firmware -> vendor of the dataset; words of a module -> letter of its type."""

_ISA = (
    (re.compile(r"x86_64|i[3-6]86|amd64"), "x86"),
    (re.compile(r"aarch64|arm64|armv[78]\w*"), "arm"),
    (re.compile(r"ppc64(?:le)?"), "power"),
    (re.compile(r"sparc(?:64)?|sparcv9"), "sparc"),
)
_IGNORED_WORDS = re.compile(
    r"""
      ^\s*\d{1,2}th\s+Gen\s+                             # '12th Gen Intel(R) Core(TM) i7-1260P'
    | \s+(?:w/|with)\s+Radeon.*                          # 'AMD Ryzen 5 3400G with Radeon Vega Graphics'
    | ,\s*altivec\s+supported.*                          # 'POWER9, altivec supported'
    | ^\s*AWS\s+ | (?<=\d)\s+AWS\s+Graviton\d+                # 'AWS Graviton3 AWS Graviton3 CPU @ 2.6GHz'
    | \s+CPU\s+@\s*[\d.]+\s*[GM]Hz\s*$                   # suffix of lscpu
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NOT_A_MODEL = re.compile(
    r"^(?:neoverse|cortex|tsv\d|denver|carmel|firestorm|avalanche|icestorm|falkor|a64fx|thunder|ampere-1)\b|"
    r"qemu|kvm\b|virtual|\bpc-|^virt|\dxx|engineering|eng sample|genuine intel|\b0000\b|unknown|not specified|"
    r"to be filled|default string|not available|none\b",
    re.IGNORECASE,
)
"""Designs of cores first; then names of hypervisors, samples and placeholders."""
_KUNPENG = re.compile(r"^kunpeng-?\s?920-?")
_MODEL_VERSION = re.compile(r"-v\d+$")
_LONGEST_NAME = 200
_IN_NAME = re.compile(r"@\s*(\d{1,2}(?:\.\d{1,3})?)\s*GHz", re.IGNORECASE | re.ASCII)
_HYPERVISORS = re.compile(
    r"\b(?:QEMU|KVM|VMware|innotek|VirtualBox|Xen|Bochs|Parallels|OpenStack|Nutanix|oVirt|Google|Amazon EC2|"
    r"DigitalOcean|Hetzner|Alibaba Cloud|Tencent Cloud|Red Hat|Virtual(?: Machine|ization)?|HVM domU)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"(?:to be filled|o\.e\.m|oem\b|system manufacturer|default string|not (?:specified|applicable)).*"
    r"|unknown|none|empty|n/a|x+|\W*",
    re.IGNORECASE | re.DOTALL,
)
_FIRMWARE_NAMES = {"gigabyte": "Gigabyte", "nettrix": "Nettrix", "sugon": "Sugon"}
"""Vendors whose firmware has another case than their published results."""

_SIZE = re.compile(r"(\d{1,9}) ?([kMGT])i?B\b", re.ASCII)
_GIB_PER = {
    "k": 1 / 1024**2,
    "M": 1 / 1024,
    "G": 1.0,
    "T": 1024.0,
}
_RATE = re.compile(r"(\d{1,6}) ?(?:MT/s|MHz)", re.ASCII)
_NOT_VOLATILE = re.compile(r"non-volatile|flash|persistent|NVDIMM-[FP]", re.IGNORECASE)
_SOLDERED = re.compile(r"LPDDR|Row Of Chips|\bDie\b|\bChip\b", re.IGNORECASE)
_MAX_RESERVE = 0.08
"""Share of the installed memory that kernel, firmware and graphics reserve at most."""

_LAYERS = frozenset({"overlay", "aufs", "rootfs", "unionfs", "fuse-overlayfs"})


@dataclass(frozen=True)
class Reading:
    """One value read from this machine.

    Units: `value` is in the unit of the standard column, text for a categorical one. `text` is the
    original text, `where` its source.
    """

    column: str
    value: float | str
    text: str
    where: str


@dataclass(frozen=True)
class HardwareInfo:
    """Readings of this machine.

    `not_read` maps a column to what to do; no column is both read and not read. `notes` describe limits of the
    readings.
    """

    readings: tuple[Reading, ...]
    not_read: dict[str, str]
    notes: tuple[str, ...]

    def without(self, columns: Container[str]) -> HardwareInfo:
        """Return the readings of the other columns."""
        readings = tuple(reading for reading in self.readings if reading.column not in columns)
        not_read = {column: advice for column, advice in self.not_read.items() if column not in columns}
        return HardwareInfo(readings, not_read, self.notes)

    def as_text(self) -> str:
        """Return the readings with their origin, the columns that could not be read with the advice, and the notes."""
        lines = ["read of this machine:"]
        for reading in self.readings:
            value = f"{reading.value:g}" if isinstance(reading.value, float) else reading.value
            lines.append(f"  {reading.column} {value} ({reading.where}: {reading.text})")
        advices: dict[str, list[str]] = {}
        for column, advice in self.not_read.items():
            advices.setdefault(advice, []).append(column)
        lines.append("could not be read:")
        lines += [f"  {', '.join(columns)}: {advice}" for advice, columns in advices.items()]
        return "\n".join([*lines, *self.notes])


class _Reader:
    """Access to a machine, and the readings so far: the first value of a column within its bounds counts."""

    def __init__(self, run: Run, root: Path) -> None:
        self._run = run
        self._root = root
        self.readings: dict[str, Reading] = {}
        self.notes: list[str] = []

    def run(self, *command: str) -> str:
        """Return the stripped output of a command; "" when it fails."""
        try:
            return self._run(command).strip()
        except FAILURES:
            return ""

    def read_text(self, path: str) -> str:
        """Return the stripped text of a file; "" when it cannot be read."""
        try:
            with (self._root / path.lstrip("/")).open("rb") as file:
                return file.read(MAX_CHARACTERS).decode("utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return ""

    def add(self, where: str, text: str, **values: float | str | None) -> None:
        """Add the values that are known and within their bounds, with the text that they come from."""
        clean = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
        shown = clean if len(clean) <= _SHOWN else f"{clean[: _SHOWN - 1]}…"
        for name, value in values.items():
            declared = _DECLARED[name]
            if value is None or value == "" or name in self.readings:
                continue
            if declared.kind is not Kind.NUMERICAL:
                self.readings[name] = Reading(name, str(value), shown, where)
            elif (declared.low or 0) <= float(value) <= (math.inf if declared.high is None else declared.high):
                self.readings[name] = Reading(name, float(value), shown, where)

    def find(self, column: str) -> float | str | None:
        """Return the value of a column, None where it was not read."""
        return self.readings[column].value if column in self.readings else None


def read_hardware(run: Run = run_command, root: Path = Path("/")) -> HardwareInfo:
    """Read this machine.

    `run` runs a command and returns its text, or raises OSError or subprocess.SubprocessError; `root` is the root of
    the file system that /proc, /sys and /etc are read from.

    Units: those of the standard columns. Every value is within its column's bounds. The result depends only
    on `run` and `root`.
    """
    reader = _Reader(run, Path(root))
    try:
        fields = lscpu.read_fields(run)
    except FAILURES:
        fields = ()
    if not fields:
        reader.notes.append("lscpu (of util-linux) does not run here: with it, more values can be read")
    virtual = _note_environment(reader, fields)
    _read_cpu_model(reader, fields)
    _read_cores(reader, fields, virtual=virtual)
    _read_memory(reader)
    _read_operating_system(reader)
    _note_container(reader)
    vendor = reader.read_text(f"{_DMI}/sys_vendor")[:_LONGEST_NAME]
    if not virtual and not _PLACEHOLDER.fullmatch(vendor):
        name = normalize_company(vendor) or ""
        reader.add(f"{_DMI}/sys_vendor", vendor, hw_vendor=_FIRMWARE_NAMES.get(name.casefold(), name))
    advice = {column: text for column, text in _ADVICE.items() if column not in reader.readings}
    readings = tuple(reader.readings[name] for name in _DECLARED if name in reader.readings)
    return HardwareInfo(readings, advice, tuple(reader.notes))


def _note_environment(reader: _Reader, fields: lscpu.Fields) -> bool:
    """Add notes on a virtual machine and a container; return whether this is a virtual machine."""
    hypervisor = lscpu.first_value(fields, "Hypervisor vendor")
    if not hypervisor and "hypervisor" in lscpu.first_value(fields, "Flags").split():
        hypervisor = "unknown"
    product = reader.read_text(f"{_DMI}/product_name")
    if not hypervisor and not re.search(r"\bmetal\b", product):
        # Arm has no CPU flag for hypervisors; the firmware reveals them
        hypervisor = (_HYPERVISORS.search(f"{reader.read_text(f'{_DMI}/sys_vendor')} {product}") or [""])[0]
    if hypervisor:
        reader.notes.append(
            f"this is a virtual machine (hypervisor: {hypervisor}): the readings are its share of the "
            "host, and other virtual machines can use the remaining hardware"
        )
    return bool(hypervisor)


def find_cpu_model(text: str) -> str | None:
    """Return the key of the CPU model in a name, by `cpu_model_key`; None for a name without a model.

    Names of core designs (Neoverse-N1), product lines (AMD EPYC) and engineering samples contain no model.
    """
    name = " ".join(text.split())
    if not name or len(name) > _LONGEST_NAME or _NOT_A_MODEL.search(name):
        return None
    key = cpu_model_key(_IGNORED_WORDS.sub("", name))
    key = " ".join(_KUNPENG.sub("kunpeng 920 ", key).split())
    return key if re.search(r"[a-z]", key) and re.search(r"\d", _MODEL_VERSION.sub("", key)) else None


def _read_cpu_model(reader: _Reader, fields: lscpu.Fields) -> None:
    architecture = lscpu.first_value(fields, "Architecture")
    isa = next((name for pattern, name in _ISA if pattern.fullmatch(architecture)), None)
    reader.add("lscpu", architecture, isa=isa, arch=parse_operating_system(architecture).arch)
    # on Arm, only the firmware has the model; on other machines the firmware can be wrong
    names = ("BIOS Model name", "Model name") if isa == "arm" else ("Model name", "BIOS Model name")
    for text in (lscpu.first_value(fields, name) for name in names):
        reader.add("lscpu", text, cpu_model=find_cpu_model(text))
    # the firmware of a virtual machine has the vendor of the hypervisor; an x86 processor has its own
    for name in ("Vendor ID",) if isa == "x86" else ("BIOS Vendor ID", "Vendor ID"):
        text = lscpu.first_value(fields, name)
        reader.add("lscpu", text, cpu_vendor=find_kind(_VENDORS, text))
    model = lscpu.first_value(fields, "Model name")
    clock = _IN_NAME.search(model)
    reader.add("lscpu", model, base_mhz=round(1000 * float(clock[1])) if clock else None)
    key = str(reader.find("cpu_model") or "")
    reader.add("name of the processor", key, cpu_vendor=look_up_facts(key)["cpu_vendor"])


def _read_cores(reader: _Reader, fields: lscpu.Fields, *, virtual: bool) -> None:
    """Read sockets, enabled cores, threads per core, and caches per core, per chip and per slice."""
    first = partial(lscpu.first_value, fields)
    names = ("Socket(s)", "Core(s) per socket", "Thread(s) per core")
    chips, per_socket, threads = (lscpu.parse_count(first(name)) for name in names)
    text = ", ".join(f"{name}: {first(name)}" for name in names)
    kinds = [value for name, value in fields if name == "Model name" and value]
    # every kind of core has its own fields; the sockets are common
    cores = (chips or 0) * (per_socket or 0) if len(kinds) < 2 else None
    online = lscpu.count_cpus(first("On-line CPU(s) list"))
    alike = bool(cores and threads and online in (0, cores * threads))
    if virtual and chips and chips > 1 and cores == chips:
        reader.notes.append("the hypervisor shows every CPU as one socket of its own: give the number of chips")
        chips = None
    reader.add("lscpu", text, chips=chips, cores_enabled_total=cores, threads_per_core=threads if alike else None)
    if cores and not alike:
        reader.notes.append(f"cores differ, as performance and efficiency cores do: {text}")
    if virtual and find_family(str(reader.find("cpu_model") or "")):
        return  # a hypervisor can show any cache sizes; for a known CPU model, the table of CPU models is better
    for name, column in _PER_CORE.items():
        size = lscpu.parse_cache_size(first(name))
        parts = max(size.instances or 0, cores or 0) if size and size.of_all else 1
        if size and parts and (alike or not cores):
            reader.add("lscpu", first(name), **{column: size.kib / parts})
    size = lscpu.parse_cache_size(first("L3 cache"))
    chips = int(reader.find("chips") or 0)
    if size and size.of_all and chips:
        reader.add("lscpu", first("L3 cache"), l3_mb_per_chip=size.kib / 1024 / chips)
        slices = size.instances
        if slices and slices % chips == 0:
            whole = bool(cores) and (cores or 0) % slices == 0
            per_slice = (cores or 0) / slices if whole else None
            mb = size.kib / 1024 / slices
            reader.add("lscpu", first("L3 cache"), l3_slice_mb=mb, l3_cores_per_slice=per_slice)


class Module(NamedTuple):
    """One installed memory device; None for values that the firmware does not have.

    Units: GiB, MT/s. `letter` is one of `parsing.memory.ECC_BY_TYPE`; `ddr` is the DDR generation of a DIMM, None for
    soldered chips and memory in the package of the processor.
    """

    gib: float
    ddr: int | None
    rated: int | None
    running: int | None
    ranks: int | None
    letter: str | None
    ecc: bool | None
    kind: str


def parse_modules(text: str) -> list[Module]:
    """Parse the memory devices in the output of `dmidecode -t memory`; unknown text is ignored.

    Source of the fields: DMTF, System Management BIOS Reference Specification (DSP0134), structures of type 17.
    """
    modules = []
    for block in re.split(r"\n\s*\n", text):
        lines = (line.strip().partition(": ") for line in block.splitlines())
        values = {name: value for name, colon, value in lines if colon}
        size = _SIZE.match(values.get("Size", ""))
        words = " ".join(
            values.get(name, "")
            for name in (
                "Type",
                "Type Detail",
                "Memory Technology",
                "Form Factor",
            )
        )
        if size is None or int(size[1]) == 0 or _NOT_VOLATILE.search(words):
            continue
        total, data = (re.match(r"\d{1,4}(?= bits)", values.get(f"{name} Width", "")) for name in ("Total", "Data"))
        ecc = int(total[0]) > int(data[0]) if total and data else None
        letter = find_kind(_TYPES, words)
        if letter == "U":  # unbuffered modules differ by their check bits
            letter = None if ecc is None else "E" if ecc else "U"
        names = ("Speed", "Configured Memory Speed", "Configured Clock Speed")
        rated, running, older = (_parse_rate(values.get(name, "")) for name in names)
        rank = re.fullmatch(r"[1-9]\d?", values.get("Rank", ""), re.ASCII)
        generation = None if _SOLDERED.search(words) else re.match(r"DDR([2-9])\b", values.get("Type", ""), re.ASCII)
        modules.append(
            Module(
                int(size[1]) * _GIB_PER[size[2]],
                int(generation[1]) if generation else None,
                rated,
                running or older,
                int(rank[0]) if rank else None,
                letter,
                ecc,
                values.get("Type", ""),
            )
        )
    return modules


def _parse_rate(text: str) -> int | None:
    match = _RATE.match(text)
    return snap_to_grade(int(match[1])) if match and int(match[1]) else None


def _read_memory(reader: _Reader) -> None:
    """Read capacity, modules and rates: of dmidecode, else the capacity that the kernel manages."""
    modules = parse_modules(reader.run("dmidecode", "-t", "memory"))
    dimms = [module for module in modules if module.ddr]
    if modules:
        total = sum(module.gib for module in modules)
        reader.add("dmidecode", f"{len(modules)} memory devices, {total:g} GiB in all", mem_total_gb=total)
    if dimms:
        kinds = Counter(module._replace(running=None) for module in dimms)
        # on a tie the larger module, so that the order of the slots does not matter
        main = max(kinds, key=lambda kind: (kinds[kind], kind.gib, str(kind)))
        # all modules run at the rate of the slowest
        rated = min((module.rated for module in dimms if module.rated), default=None)
        running = min((module.running for module in dimms if module.running), default=None)
        reader.add(
            "dmidecode",
            f"{len(dimms)} DIMMs, most of them {main.gib:g} GiB DDR{main.ddr}, {rated} MT/s, running at {running}",
            hbm_gb=sum(module.gib for module in modules if module.kind.startswith("HBM")),
            dimm_count=len(dimms),
            dimm_groups=len(kinds),
            dimm_gb=main.gib,
            dimm_ranks=main.ranks,
            dimm_type=main.letter,
            ecc=main.ecc,
            ddr_gen=main.ddr,
            mem_rated_mts=rated,
            mem_running_mts=None if running == rated else running,
        )
    match = re.search(r"^MemTotal:\s{1,40}(\d{1,15}) kB", reader.read_text(_MEMINFO), re.ASCII | re.MULTILINE)
    if match and not modules:
        managed = int(match[1]) / 1024**2
        installed = estimate_installed_gib(managed)
        reader.add(_MEMINFO, f"MemTotal: {match[1]} kB", mem_total_gb=installed or round(managed, 1))
        reader.notes.append(
            f"memory: the system manages {managed:.4g} GiB; firmware and kernel reserve the difference to the "
            "installed memory: give the memory if you know it"
        )


def estimate_installed_gib(managed: float) -> float | None:
    """Return the next capacity of equal modules above the managed memory; None if it is too far above.

    Units: GiB. Equal modules in 1, 2, 4, 8 ... slots times 4, 5, 6 or 7 give 4 sizes per doubling: 64, 80, 96, 112,
    128.
    """
    if managed <= 0:
        return None
    step = 2.0 ** (math.floor(math.log2(managed)) - 2)
    installed = math.ceil(managed / step) * step
    return installed if installed - managed <= _MAX_RESERVE * installed else None


def _read_operating_system(reader: _Reader) -> None:
    path = "/etc/os-release"
    lines = (line.strip().partition("=") for line in reader.read_text(path).splitlines())
    name = {key: value.strip("\"'") for key, _, value in lines}.get("PRETTY_NAME", "")
    system = parse_operating_system(name)
    reader.add(path, name, os_name=system.os_name, os_version=system.os_version if system.os_name else None)
    # privacy: other options print the host name
    kernel = reader.run("uname", "-r")
    reader.add("uname", kernel, kernel_series=parse_operating_system(f"kernel {kernel}").kernel_series)


def _note_container(reader: _Reader) -> None:
    """Add a note where the root directory has the layers of a container."""
    mounts = [line.split() for line in reader.read_text(_MOUNTS).splitlines()]
    if any(words[1:2] == ["/"] and words[2] in _LAYERS for words in mounts if len(words) > 2):
        reader.notes.append("this is a container: processor, memory and kernel are those of the host, the rest its own")
