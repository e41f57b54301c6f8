"""Nominal and highest clock."""

from __future__ import annotations

import re

from perfcast.this_machine import lscpu
from perfcast.this_machine._host import Surroundings
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_CPU = "/sys/devices/system/cpu"
_FREQUENCY = f"{_CPU}/cpu0/cpufreq"
_IN_NAME = re.compile(r"@\s*(\d{1,2}(?:\.\d{1,3})?)\s*GHz", re.IGNORECASE | re.ASCII)
_MHZ = re.compile(r"(\d{1,6})(?:\.\d{1,6})?", re.ASCII)
_DRIVERS = ("intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp")
"""Drivers whose highest clock is that of the boost where the boost is on; acpi-cpufreq's need not be."""


def read_clocks(gathering: Gathering, host: Host, fields: lscpu.Fields, around: Surroundings, where: str) -> None:
    """Read base_mhz of the name or the driver, and max_turbo_mhz where the driver counts the boost in."""
    model = lscpu.first(fields, "Model name")
    match = _IN_NAME.search(model)
    gathering.put("base_mhz", round(1000 * float(match[1])) if match else None, model, where)
    # The driver's number is in kHz; a virtual machine's is made up.
    khz = None if around.virtual else lscpu.count(host.text(f"{_FREQUENCY}/base_frequency"))
    gathering.put("base_mhz", round(khz / 1000) if khz else None, f"{khz} kHz", f"{_FREQUENCY}/base_frequency")
    if not around.virtual and gathering.text("isa") == "x86":
        # ACPI calls nominal what a processor can sustain: the base clock of the data sheet.
        nominal = f"{_CPU}/cpu0/acpi_cppc/nominal_freq"
        mhz = lscpu.count(host.text(nominal))
        gathering.put("base_mhz", mhz or None, f"{mhz} MHz", nominal)
    gathering.miss(
        ["base_mhz"], "neither the name nor the driver says it: give it, or the processor's name, which tells it"
    )

    if around.virtual:
        gathering.miss(
            ["max_turbo_mhz"], "a virtual machine does not see it: give it, or the processor's name, which tells it"
        )
        return
    stated = lscpu.first(fields, "CPU max MHz")
    highest, source = _MHZ.match(stated), where
    if highest is None:
        khz = lscpu.count(host.text(f"{_FREQUENCY}/cpuinfo_max_freq"))
        stated, source = (str(khz / 1000), f"{_FREQUENCY}/cpuinfo_max_freq") if khz else ("", "")
        highest = _MHZ.match(stated)
    why = _not_the_turbo(gathering, host, fields)
    if highest and not why:
        gathering.put("max_turbo_mhz", round(float(highest[0])), f"{stated} MHz", source)
    gathering.miss(
        ["max_turbo_mhz"], f"{why or 'the driver does not say it'}: give it, or the processor's name, which tells it"
    )


def _not_the_turbo(gathering: Gathering, host: Host, fields: lscpu.Fields) -> str:
    """Return why the highest clock the driver knows is not the part's; "" where it is."""
    if gathering.text("isa") == "arm":
        # No boost beyond it there.
        return ""
    off = host.text(f"{_CPU}/intel_pstate/no_turbo") == "1" or host.text(f"{_CPU}/cpufreq/boost") == "0"
    if off or lscpu.first(fields, "Frequency boost") == "disabled":
        return "the boost is switched off"
    driver = host.text(f"{_FREQUENCY}/scaling_driver")
    if driver and driver not in _DRIVERS:
        return f"the driver {driver[:40]} does not say how far the boost goes"
    if not driver and not lscpu.first(fields, "Frequency boost"):
        # intel_pstate has no such line in lscpu: its highest clock is above the base clock where the boost is on.
        base, highest = gathering.number("base_mhz"), _MHZ.match(lscpu.first(fields, "CPU max MHz"))
        if base is None or highest is None or float(highest[0]) < 1.03 * base:
            return "it is not known whether the driver counts the boost in"
    return ""
