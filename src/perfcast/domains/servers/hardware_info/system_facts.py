"""Hypervisor, container, operating system, storage and vendor of a machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.hardware_info.readings import Host, ReadingCollector
from perfcast.domains.servers.parsing.operating_system import parse_operating_system
from perfcast.microbench import machine as lscpu

DMI = "/sys/class/dmi/id"
_VIRTUAL_VENDORS = re.compile(
    r"\b(?:QEMU|KVM|VMware|innotek|VirtualBox|Xen|Bochs|Parallels|OpenStack|Nutanix|oVirt|Google|Amazon EC2|"
    r"DigitalOcean|Hetzner|Alibaba Cloud|Tencent Cloud|Red Hat)\b"
)
_VIRTUAL_PRODUCTS = re.compile(r"\bVirtual(?: Machine|ization)?\b|\bKVM\b|\bHVM domU\b", re.IGNORECASE)
_BARE_METAL = re.compile(r"\bmetal\b", re.IGNORECASE)
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_MIN_LIMIT_BYTES = 1 << 20

_RELEASE_FILES = ("/etc/os-release", "/usr/lib/os-release")

_MOUNTS, _BLOCK = "/proc/mounts", "/sys/block"
_LAYERS = frozenset({"overlay", "aufs", "rootfs", "unionfs", "fuse-overlayfs"})
_MEMORY = frozenset({"tmpfs", "ramfs"})
_NAME = re.compile(r"[\w!.-]{1,64}", re.ASCII)
_SECTOR = 512
_MAX_DEPTH = 6


@dataclass(frozen=True)
class Environment:
    """Hypervisor and container of this process. `hypervisor` is its name; "" for a physical machine."""

    hypervisor: str
    container: bool

    @property
    def virtual(self) -> bool:
        """Return whether this is a virtual machine."""
        return bool(self.hypervisor)


def detect_environment(host: Host, fields: lscpu.Fields) -> Environment:
    """Detect a hypervisor from lscpu and the firmware vendor, and a container from its files."""
    return Environment(_hypervisor(host, fields), any(map(host.exists, _CONTAINER_FILES)))


def _hypervisor(host: Host, fields: lscpu.Fields) -> str:
    named = lscpu.first_value(fields, "Hypervisor vendor")
    # the first guest of Xen controls the hardware and sees all of it
    if named and lscpu.first_value(fields, "Virtualization type") != "none":
        return named
    if "hypervisor" in lscpu.first_value(fields, "Flags").split():
        return "unknown"
    # Arm has no CPU flag for hypervisors; the firmware vendor reveals them
    vendor, product = host.read_text(f"{DMI}/sys_vendor"), host.read_text(f"{DMI}/product_name")
    if _BARE_METAL.search(product):
        return ""
    match = _VIRTUAL_VENDORS.search(vendor)
    return match[0] if match else (_VIRTUAL_PRODUCTS.search(product) or [""])[0]


def note_environment(collector: ReadingCollector, host: Host, environment: Environment) -> None:
    """Add notes on a virtual machine, a container and control-group limits."""
    if environment.virtual:
        collector.add_note(
            f"this is a virtual machine (hypervisor: {environment.hypervisor}): the readings are its share of the "
            "host, and other virtual machines can use the remaining hardware"
        )
    if environment.container:
        collector.add_note(
            "this is a container: processor, memory and kernel are those of the host, the operating system is its own"
        )
    limits = [limit for limit in (_cpu_limit(host), _memory_limit(host)) if limit]
    if limits:
        collector.add_note(
            f"a control group limits this process to {' and '.join(limits)}: the readings are of the whole machine"
        )


def _cpu_limit(host: Host) -> str:
    match = re.fullmatch(r"(\d{1,12}) (\d{1,12})", host.read_text("/sys/fs/cgroup/cpu.max"), re.ASCII)
    return f"the time of {int(match[1]) / int(match[2]):.3g} processors" if match and int(match[2]) else ""


def _memory_limit(host: Host) -> str:
    text = host.read_text("/sys/fs/cgroup/memory.max")
    match = re.fullmatch(r"\d{1,18}", text, re.ASCII)
    return f"{int(text) / 1024**3:.4g} GiB of memory" if match and int(text) >= _MIN_LIMIT_BYTES else ""


def read_operating_system(collector: ReadingCollector, host: Host, fields: lscpu.Fields) -> None:
    """Read os_name, os_version, kernel_series and arch."""
    path = next((path for path in _RELEASE_FILES if host.read_text(path)), _RELEASE_FILES[0])
    release = _values(host.read_text(path))
    name = release.get("PRETTY_NAME") or " ".join(filter(None, (release.get("NAME"), release.get("VERSION"))))
    system = parse_operating_system(name)
    collector.add("os_name", system.os_name, name, path)
    if system.os_name:
        collector.add("os_version", system.os_version, name, path)
    reason = f"published results have no system {name[:60]!r}" if name else f"{path} has no system"
    collector.add_missing(["os_name", "os_version"], f"{reason}: give the system and its release")

    # privacy: other options print the host name
    kernel = host.run_or_empty("uname", "-r")
    collector.add("kernel_series", parse_operating_system(f"kernel {kernel}").kernel_series, kernel, "uname")
    collector.add_missing(["kernel_series"], "uname does not have it: give the first two numbers of the kernel")

    stated = lscpu.first_value(fields, "Architecture")
    for text, where in ((stated, "lscpu"), (host.run_or_empty("uname", "-m"), "uname")):
        collector.add("arch", parse_operating_system(text).arch if text else None, text, where)
    collector.add_missing(["arch"], "neither lscpu nor uname has an architecture of published results: give the value")


def _values(text: str) -> dict[str, str]:
    """Return the assignments of an os-release file without quotes."""
    parts = (line.strip().partition("=") for line in text.splitlines())
    return {name: value.strip().strip("\"'") for name, equals, value in parts if equals and not name.startswith("#")}


def read_storage(collector: ReadingCollector, host: Host, environment: Environment) -> None:
    """Read the file system of the root directory, and class and raw capacity of its disks.

    Units: GB (10^9 bytes), rounded, as disks are sold.
    """
    device, kind = _root(host)
    if not kind or kind in _LAYERS:
        reason = f"{_MOUNTS} shows the {kind} of a container, not the disk" if kind else f"{_MOUNTS} has no root"
        collector.add_missing(["file_system", "storage_class", "storage_gb"], f"{reason}: give the value")
        return
    collector.add("file_system", kind, f"{kind} at /", _MOUNTS)
    if kind in _MEMORY:
        collector.add("storage_class", "ram", f"{kind} at /", _MOUNTS)
        collector.add_missing(["storage_gb"], "the root directory is in memory: give the size of the file system")
        return
    disks = _disks(host, device)
    if not disks:
        collector.add_missing(
            ["storage_class", "storage_gb"], f"{_BLOCK} does not show the disk of the root directory: give the value"
        )
        return
    sizes = [host.read_text(f"{_BLOCK}/{disk}/size") for disk in disks]
    if all(re.fullmatch(r"\d{1,15}", size, re.ASCII) and int(size) for size in sizes):
        total = sum(int(size) for size in sizes) * _SECTOR
        collector.add("storage_gb", round(total / 1e9), f"{', '.join(disks)}: {total} bytes", f"{_BLOCK}/*/size")
    if environment.virtual:
        collector.add_missing(["storage_class"], "a hypervisor hides the class of its disks: give ssd, nvme or hdd")
    classes = {_class(host, disk) for disk in disks}
    if len(classes) == 1 and not environment.virtual:
        rotates = ", ".join(f"{disk} rotational: {host.read_text(_rotational(disk))}" for disk in disks)
        collector.add("storage_class", classes.pop(), rotates, f"{_BLOCK}/*/queue/rotational")
    collector.add_missing(
        ["storage_class"], "the disks of the root directory have different or unknown classes: give the value"
    )
    collector.add_missing(["storage_gb"], f"{_BLOCK} does not have it: give the value")


def _root(host: Host) -> tuple[str, str]:
    """Return device and type of the last mount at the root, which hides those before."""
    mount = ("", "")
    for line in host.read_text(_MOUNTS).splitlines():
        fields = line.split()
        if len(fields) >= 3 and fields[1] == "/":
            mount = (fields[0], fields[2][:40])
    return mount


def _disks(host: Host, device: str) -> list[str]:
    """Return the physical disks of a device, through partitions, volumes and arrays."""
    names = host.list_names(_BLOCK)
    name = device.removeprefix("/dev/")
    if name.startswith("mapper/"):
        mapped = name.removeprefix("mapper/")
        name = next((disk for disk in names if host.read_text(f"{_BLOCK}/{disk}/dm/name") == mapped), "")
    return sorted(_below(host, names, name, _MAX_DEPTH)) if device.startswith("/dev/") else []


def _below(host: Host, names: list[str], name: str, depth: int) -> set[str]:
    if not _NAME.fullmatch(name) or depth == 0:
        return set()
    disk = name if name in names else next((disk for disk in names if host.exists(f"{_BLOCK}/{disk}/{name}")), "")
    if not disk:
        return set()
    parts = host.list_names(f"{_BLOCK}/{disk}/slaves")
    below = [_below(host, names, part, depth - 1) for part in parts]
    return set().union(*below) if parts else {disk}


def _rotational(disk: str) -> str:
    return f"{_BLOCK}/{disk}/queue/rotational"


def _class(host: Host, disk: str) -> str | None:
    if disk.startswith("nvme"):
        return "nvme"
    return {"0": "ssd", "1": "hdd"}.get(host.read_text(_rotational(disk)))
