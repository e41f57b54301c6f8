"""What kind of host this is: a machine of its own, a virtual one, a container, one with a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.this_machine import lscpu
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

DMI = "/sys/class/dmi/id"
_VIRTUAL_MAKERS = re.compile(
    r"\b(?:QEMU|KVM|VMware|innotek|VirtualBox|Xen|Bochs|Parallels|OpenStack|Nutanix|oVirt|Google|Amazon EC2|"
    r"DigitalOcean|Hetzner|Alibaba Cloud|Tencent Cloud|Red Hat)\b"
)
_VIRTUAL_PRODUCTS = re.compile(r"\bVirtual(?: Machine|ization)?\b|\bKVM\b|\bHVM domU\b", re.IGNORECASE)
_OWN_MACHINE = re.compile(r"\bmetal\b", re.IGNORECASE)
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_LEAST_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True)
class Surroundings:
    """What stands between this process and the hardware. `hypervisor` names it; "" for a machine of its own."""

    hypervisor: str
    container: bool

    @property
    def virtual(self) -> bool:
        """Whether a hypervisor decides what is seen."""
        return bool(self.hypervisor)


def surroundings(host: Host, fields: lscpu.Fields) -> Surroundings:
    """Return what lscpu and the firmware's maker say of a hypervisor, and whether this is a container."""
    return Surroundings(_hypervisor(host, fields), any(map(host.exists, _CONTAINER_FILES)))


def _hypervisor(host: Host, fields: lscpu.Fields) -> str:
    named = lscpu.first(fields, "Hypervisor vendor")
    # The first guest of Xen and the like owns the hardware and sees all of it.
    if named and lscpu.first(fields, "Virtualization type") != "none":
        return named
    if "hypervisor" in lscpu.first(fields, "Flags").split():
        return "of unknown make"
    # On Arm no instruction tells of a hypervisor; the firmware's maker does.
    maker, product = host.text(f"{DMI}/sys_vendor"), host.text(f"{DMI}/product_name")
    if _OWN_MACHINE.search(product):
        return ""
    match = _VIRTUAL_MAKERS.search(maker)
    return match[0] if match else (_VIRTUAL_PRODUCTS.search(product) or [""])[0]


def note_surroundings(gathering: Gathering, host: Host, around: Surroundings) -> None:
    """Say what a virtual machine, a container and a limit do to the readings."""
    if around.virtual:
        gathering.note(
            f"this is a virtual machine (hypervisor: {around.hypervisor}): it is read as what it was given, which is "
            "less than what the processor has, and neighbours may share the rest"
        )
    if around.container:
        gathering.note(
            "this is a container: processor, memory and kernel are the host's, the operating system is the container's"
        )
    limits = [limit for limit in (_processor_limit(host), _memory_limit(host)) if limit]
    if limits:
        gathering.note(f"a control group limits this process to {' and '.join(limits)}: the whole machine is read")


def _processor_limit(host: Host) -> str:
    match = re.fullmatch(r"(\d{1,12}) (\d{1,12})", host.text("/sys/fs/cgroup/cpu.max"), re.ASCII)
    return f"the time of {int(match[1]) / int(match[2]):.3g} processors" if match and int(match[2]) else ""


def _memory_limit(host: Host) -> str:
    text = host.text("/sys/fs/cgroup/memory.max")
    match = re.fullmatch(r"\d{1,18}", text, re.ASCII)
    return f"{int(text) / 1024**3:.4g} GiB of memory" if match and int(text) >= _LEAST_LIMIT_BYTES else ""
