"""The processor's name: which part it is, who made it, and when a name says neither."""

from __future__ import annotations

import re

from perfcast.processors.families import facts_of, family_of
from perfcast.processors.names import part_key
from perfcast.this_machine import lscpu
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_MAKERS = {
    "GenuineIntel": "Intel",
    "AuthenticAMD": "AMD",
    "HygonGenuine": "Hygon",
    "CentaurHauls": "Zhaoxin",
    "Shanghai": "Zhaoxin",
    "IBM": "IBM",
    "HiSilicon": "Huawei",
    "Ampere": "Ampere",
    "Fujitsu": "Fujitsu",
    "NVIDIA": "NVIDIA",
    "AWS": "AWS",
}
"""What a processor or its firmware calls the maker -> the data set's word. ARM is the designer of cores, no maker."""

_ISA = (
    (re.compile(r"x86_64|i[3-6]86|amd64"), "x86"),
    (re.compile(r"aarch64|arm64|armv[78]\w*"), "arm"),
    (re.compile(r"ppc64(?:le)?"), "power"),
    (re.compile(r"sparc(?:64)?|sparcv9"), "sparc"),
)
_DROPPED = re.compile(
    r"""
      ^\s*\d{1,2}th\s+Gen\s+                             # '12th Gen Intel(R) Core(TM) i7-1260P'
    | \s+(?:w/|with)\s+Radeon.*                          # 'AMD Ryzen 5 3400G with Radeon Vega Graphics'
    | ,\s*altivec\s+supported.*                          # 'POWER9, altivec supported'
    | ^\s*AWS\s+ | (?<=\d)\s+AWS\s+Graviton\d+                # 'AWS Graviton3 AWS Graviton3 CPU @ 2.6GHz'
    | \s+CPU\s+@\s*[\d.]+\s*[GM]Hz\s*$                   # what lscpu adds to the firmware's name
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CORE_DESIGNS = re.compile(
    r"(?:neoverse|cortex|tsv\d|denver|carmel|firestorm|avalanche|icestorm|falkor|a64fx|thunder|ampere-1)\b",
    re.IGNORECASE,
)
_NO_PART = re.compile(
    r"qemu|kvm\b|virtual|\bpc-|^virt|\dxx|engineering|eng sample|genuine intel|\b0000\b|unknown|not specified|"
    r"to be filled|default string|not available|none\b",
    re.IGNORECASE,
)
_KUNPENG = re.compile(r"^kunpeng-?\s?920-?")
_MODEL_VERSION = re.compile(r"-v\d+$")
_LONGEST = 200
_EXAMPLE = "give its name, such as 'Xeon Gold 6252' or 'EPYC 9654'"


def read_part(gathering: Gathering, host: Host, fields: lscpu.Fields, where: str) -> None:
    """Read part_key, cpu_vendor, isa and the architecture of the operating system."""
    model, firmware = lscpu.first(fields, "Model name"), lscpu.first(fields, "BIOS Model name")
    # Arm's cores are named after their design, and only the firmware names the part; elsewhere the firmware may err.
    for text in (firmware, model) if lscpu.first(fields, "Architecture") == "aarch64" else (model, firmware):
        key = part_of(text)
        if key and gathering.put("part_key", key, text, where):
            break
    gathering.miss(["part_key"], _why_no_part(model, where))

    machine = lscpu.first(fields, "Architecture") or host.say("uname", "-m")
    source = where if lscpu.first(fields, "Architecture") else "uname"
    isa = next((name for pattern, name in _ISA if pattern.fullmatch(machine)), None)
    gathering.put("isa", isa, machine, source)
    gathering.miss(["isa"], f"the data set knows no architecture {machine[:40]!r}" if machine else "nothing says it")

    for name in ("BIOS Vendor ID", "Vendor ID"):
        text = lscpu.first(fields, name)
        maker = next((maker for start, maker in _MAKERS.items() if text.startswith(start)), None)
        # A virtual machine's firmware names the hypervisor's maker, an x86 processor names its own.
        if isa != "x86" or name == "Vendor ID":
            gathering.put("cpu_vendor", maker, text, where)
    vendor = facts_of(gathering.text("part_key") or "")["cpu_vendor"]
    gathering.put("cpu_vendor", vendor, gathering.text("part_key") or "", where)
    gathering.miss(["cpu_vendor"], "nothing says who made the processor: give its vendor")


def part_of(text: str) -> str | None:
    """Return the part key of a name that names one part, as `processors.names.part_key`; None for any other name.

    Names of designs (Neoverse-N1), of lines alone (AMD EPYC, Intel Xeon Processor (Skylake)) and engineering samples
    name no part.
    """
    name = " ".join(text.split())
    if not name or len(name) > _LONGEST or _NO_PART.search(name) or _CORE_DESIGNS.match(name):
        return None
    key = part_key(_DROPPED.sub("", name))
    key = " ".join(_KUNPENG.sub("kunpeng 920 ", key).split())
    return key if re.search(r"[a-z]", key) and re.search(r"\d", _MODEL_VERSION.sub("", key)) else None


def known_part(gathering: Gathering) -> bool:
    """Tell whether the family tables know the part that was read: what they say is then better than a guess."""
    return family_of(gathering.text("part_key") or "") is not None


def _why_no_part(model: str, where: str) -> str:
    if not model:
        return f"{where} names no processor: {_EXAMPLE}"
    kind = "a design of cores" if _CORE_DESIGNS.match(model) else "no one part"
    return f"{where} says {' '.join(model.split())[:60]!r}, which is {kind}: {_EXAMPLE}"
