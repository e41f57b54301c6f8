"""CPU model, vendor, clocks, and width of the vector units."""

from __future__ import annotations

import re

from perfcast.domains.servers.hardware_info.readings import Host, ReadingCollector
from perfcast.domains.servers.hardware_info.system_facts import Environment
from perfcast.domains.servers.parsing.text_normalization import find_kind, read_rules
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.families import look_up_facts
from perfcast.microbench import machine as lscpu

_VENDORS = read_rules("processor vendors")
"""Vendor text of a processor or its firmware -> vendor of the dataset."""

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
_CORE_DESIGNS = re.compile(
    r"(?:neoverse|cortex|tsv\d|denver|carmel|firestorm|avalanche|icestorm|falkor|a64fx|thunder|ampere-1)\b",
    re.IGNORECASE,
)
_NOT_A_MODEL = re.compile(
    r"qemu|kvm\b|virtual|\bpc-|^virt|\dxx|engineering|eng sample|genuine intel|\b0000\b|unknown|not specified|"
    r"to be filled|default string|not available|none\b",
    re.IGNORECASE,
)
_KUNPENG = re.compile(r"^kunpeng-?\s?920-?")
_MODEL_VERSION = re.compile(r"-v\d+$")
_MAX_LENGTH = 200
_EXAMPLE = "give its name, for example 'Xeon Gold 6252' or 'EPYC 9654'"

_CPU = "/sys/devices/system/cpu"
_FREQUENCY = f"{_CPU}/cpu0/cpufreq"
_IN_NAME = re.compile(r"@\s*(\d{1,2}(?:\.\d{1,3})?)\s*GHz", re.IGNORECASE | re.ASCII)
_MHZ = re.compile(r"(\d{1,6})(?:\.\d{1,6})?", re.ASCII)
_DRIVERS = ("intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp")
"""Drivers whose highest clock includes an enabled boost; that of acpi-cpufreq can exclude it."""

_FIRST_AMX_KERNEL = (5, 16)
_ZEN_3_OR_4 = "25"
_NAME = "give the value or the name of the processor"


def read_cpu_model(collector: ReadingCollector, host: Host, fields: lscpu.Fields, where: str) -> None:
    """Read cpu_model, cpu_vendor and isa."""
    model, firmware = lscpu.first_value(fields, "Model name"), lscpu.first_value(fields, "BIOS Model name")
    # on Arm, only the firmware has the model; on other machines the firmware can be wrong
    for text in (firmware, model) if lscpu.first_value(fields, "Architecture") == "aarch64" else (model, firmware):
        key = find_cpu_model(text)
        if key and collector.add("cpu_model", key, text, where):
            break
    collector.add_missing(["cpu_model"], _explain_missing_model(model, where))

    machine = lscpu.first_value(fields, "Architecture") or host.run_or_empty("uname", "-m")
    source = where if lscpu.first_value(fields, "Architecture") else "uname"
    isa = next((name for pattern, name in _ISA if pattern.fullmatch(machine)), None)
    collector.add("isa", isa, machine, source)
    collector.add_missing(
        ["isa"], f"the dataset has no architecture {machine[:40]!r}" if machine else "no source has it: give the value"
    )

    for name in ("BIOS Vendor ID", "Vendor ID"):
        text = lscpu.first_value(fields, name)
        stated = find_kind(_VENDORS, text)
        # the firmware of a virtual machine has the vendor of the hypervisor; an x86 processor has its own
        if isa != "x86" or name == "Vendor ID":
            collector.add("cpu_vendor", stated, text, where)
    vendor = look_up_facts(collector.get_text("cpu_model") or "")["cpu_vendor"]
    collector.add("cpu_vendor", vendor, collector.get_text("cpu_model") or "", where)
    collector.add_missing(["cpu_vendor"], "no source has the vendor of the processor: give it")


def find_cpu_model(text: str) -> str | None:
    """Return the key of the CPU model in a name, by `cpu_model_key`; None for a name without a model.

    Names of core designs (Neoverse-N1), product lines (AMD EPYC) and engineering samples contain no model.
    """
    name = " ".join(text.split())
    if not name or len(name) > _MAX_LENGTH or _NOT_A_MODEL.search(name) or _CORE_DESIGNS.match(name):
        return None
    key = cpu_model_key(_IGNORED_WORDS.sub("", name))
    key = " ".join(_KUNPENG.sub("kunpeng 920 ", key).split())
    return key if re.search(r"[a-z]", key) and re.search(r"\d", _MODEL_VERSION.sub("", key)) else None


def is_known_cpu_model(collector: ReadingCollector) -> bool:
    """Return whether the family tables have the CPU model, so that their values replace guesses."""
    return find_family(collector.get_text("cpu_model") or "") is not None


def _explain_missing_model(model: str, where: str) -> str:
    if not model:
        return f"{where} has no processor name: {_EXAMPLE}"
    kind = "a core design" if _CORE_DESIGNS.match(model) else "no CPU model"
    return f"{where} has {' '.join(model.split())[:60]!r}, which is {kind}: {_EXAMPLE}"


def read_clocks(
    collector: ReadingCollector, host: Host, fields: lscpu.Fields, environment: Environment, where: str
) -> None:
    """Read base_mhz from the name or the driver, and max_turbo_mhz from a driver that includes the boost."""
    model = lscpu.first_value(fields, "Model name")
    match = _IN_NAME.search(model)
    collector.add("base_mhz", round(1000 * float(match[1])) if match else None, model, where)
    # in kHz; the value of a virtual machine is arbitrary
    khz = None if environment.virtual else lscpu.parse_count(host.read_text(f"{_FREQUENCY}/base_frequency"))
    collector.add("base_mhz", round(khz / 1000) if khz else None, f"{khz} kHz", f"{_FREQUENCY}/base_frequency")
    if not environment.virtual and collector.get_text("isa") == "x86":
        # the nominal frequency of ACPI is the base clock of the data sheet
        nominal = f"{_CPU}/cpu0/acpi_cppc/nominal_freq"
        mhz = lscpu.parse_count(host.read_text(nominal))
        collector.add("base_mhz", mhz or None, f"{mhz} MHz", nominal)
    collector.add_missing(
        ["base_mhz"], "neither the name nor the driver has it: give the value or the name of the processor"
    )

    if environment.virtual:
        collector.add_missing(
            ["max_turbo_mhz"], "a virtual machine does not show it: give the value or the name of the processor"
        )
        return
    stated = lscpu.first_value(fields, "CPU max MHz")
    highest = _MHZ.match(stated)
    reason = _explain_missing_turbo(collector, host, fields)
    if highest and not reason:
        collector.add("max_turbo_mhz", round(float(highest[0])), f"{stated} MHz", where)
    collector.add_missing(
        ["max_turbo_mhz"], f"{reason or 'the driver does not have it'}: give the value or the name of the processor"
    )


def _explain_missing_turbo(collector: ReadingCollector, host: Host, fields: lscpu.Fields) -> str:
    """Return why the highest clock of the driver is not that of the CPU model; "" if it is."""
    if collector.get_text("isa") == "arm":
        return ""
    off = host.read_text(f"{_CPU}/intel_pstate/no_turbo") == "1" or host.read_text(f"{_CPU}/cpufreq/boost") == "0"
    if off or lscpu.first_value(fields, "Frequency boost") == "disabled":
        return "the boost is switched off"
    driver = host.read_text(f"{_FREQUENCY}/scaling_driver")
    if driver and driver not in _DRIVERS:
        return f"the driver {driver[:40]} does not include the boost"
    if not driver and not lscpu.first_value(fields, "Frequency boost"):
        # lscpu has no such line for intel_pstate: with boost, its highest clock is above the base clock
        base, highest = collector.get_number("base_mhz"), _MHZ.match(lscpu.first_value(fields, "CPU max MHz"))
        if base is None or highest is None or float(highest[0]) < 1.03 * base:
            return "it is not known whether the driver includes the boost"
    return ""


def read_vectors(collector: ReadingCollector, fields: lscpu.Fields, environment: Environment, where: str) -> None:
    """Read simd_bits and has_amx if the flags are sufficient.

    The columns describe the vector units. Wide instructions can run on units of half the width (AVX-512 on Zen 4),
    and a hypervisor can hide instructions.
    """
    flags = set(lscpu.first_value(fields, "Flags").split())
    if not flags or (environment.virtual and is_known_cpu_model(collector)):
        reason = "a hypervisor can hide instructions" if flags else f"{where} lists no instruction sets"
        collector.add_missing(["simd_bits", "has_amx"], f"{reason}: {_NAME}")
        return
    width = _width(collector, fields, flags, environment)
    if isinstance(width, str):
        collector.add_missing(["simd_bits"], f"{width}: {_NAME}")
    else:
        collector.add("simd_bits", *width, where)
    amx = "amx_tile" in flags
    if amx or _shows_amx(collector, environment):
        collector.add("has_amx", amx, "amx_tile" if amx else "no amx_tile among the flags", where)
    collector.add_missing(["has_amx"], f"no amx_tile among the flags, but the system can hide it: {_NAME}")


def _width(
    collector: ReadingCollector, fields: lscpu.Fields, flags: set[str], environment: Environment
) -> tuple[int, str] | str:
    """Return the width in bits and its source, or the reason why it is unknown."""
    if collector.get_text("isa") == "arm":
        if {"sve", "sve2"} & flags:
            return "the width of SVE is not among the flags"
        return (128, "asimd") if "asimd" in flags else "no vector instructions are listed"
    vendor = collector.get_text("cpu_vendor")
    if vendor == "Intel":
        return _intel_width(flags, environment)
    if vendor == "AMD" and lscpu.first_value(fields, "CPU family") == _ZEN_3_OR_4 and "avx2" in flags:
        return 256, "AMD family 25 (Zen 3 and Zen 4)"
    return "vector units can be narrower than the instructions"


def _intel_width(flags: set[str], environment: Environment) -> tuple[int, str] | str:
    if "avx512f" in flags:
        return 512, "avx512f"
    if environment.virtual:
        return "a hypervisor can hide instructions"
    if "avx_vnni" in flags:
        return "performance cores have units of 256 bits, efficiency cores of 128"
    return (256, "avx2" if "avx2" in flags else "avx") if "avx" in flags else "there is no AVX"


def _shows_amx(collector: ReadingCollector, environment: Environment) -> bool:
    if collector.get_text("isa") != "x86" or collector.get_text("cpu_vendor") == "AMD":
        return collector.get_text("isa") is not None
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,4})", collector.get_text("kernel_series") or "", re.ASCII)
    is_recent = match is not None and (int(match[1]), int(match[2])) >= _FIRST_AMX_KERNEL
    return is_recent and not environment.virtual
