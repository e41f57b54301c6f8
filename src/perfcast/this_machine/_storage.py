"""File system and storage of the root directory."""

from __future__ import annotations

import re

from perfcast.this_machine._host import Surroundings
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_MOUNTS, _BLOCK = "/proc/mounts", "/sys/block"
_LAYERS = frozenset({"overlay", "aufs", "rootfs", "unionfs", "fuse-overlayfs"})
_MEMORY = frozenset({"tmpfs", "ramfs"})
_NAME = re.compile(r"[\w!.-]{1,64}", re.ASCII)
_SECTOR = 512
_DEEPEST = 6


def read_storage(gathering: Gathering, host: Host, around: Surroundings) -> None:
    """Read the root's file system, and class and raw capacity of the disks it lies on.

    Units: 10^9 bytes, rounded to whole ones, as disks are sold.
    """
    device, kind = _root(host)
    if not kind or kind in _LAYERS:
        why = f"{_MOUNTS} shows a container's {kind}, not the disk below" if kind else f"{_MOUNTS} has no root"
        gathering.miss(["file_system", "storage_class", "storage_gb"], f"{why}: give it")
        return
    gathering.put("file_system", kind, f"{kind} at /", _MOUNTS)
    if kind in _MEMORY:
        gathering.put("storage_class", "ram", f"{kind} at /", _MOUNTS)
        gathering.miss(["storage_gb"], "the root lies in memory: give the size of the file system")
        return
    disks = _disks(host, device)
    if not disks:
        gathering.miss(["storage_class", "storage_gb"], f"{_BLOCK} does not show the root's disk: give it")
        return
    sizes = [host.text(f"{_BLOCK}/{disk}/size") for disk in disks]
    if all(re.fullmatch(r"\d{1,15}", size, re.ASCII) and int(size) for size in sizes):
        total = sum(int(size) for size in sizes) * _SECTOR
        gathering.put("storage_gb", round(total / 1e9), f"{', '.join(disks)}: {total} bytes", f"{_BLOCK}/*/size")
    if around.virtual:
        gathering.miss(["storage_class"], "a hypervisor hides what its disks lie on: give ssd, nvme or hdd")
    classes = {_class(host, disk) for disk in disks}
    if len(classes) == 1 and not around.virtual:
        rotates = ", ".join(f"{disk} rotational: {host.text(_rotational(disk))}" for disk in disks)
        gathering.put("storage_class", classes.pop(), rotates, f"{_BLOCK}/*/queue/rotational")
    gathering.miss(["storage_class"], "the root's disks are of different or unknown classes: give it")
    gathering.miss(["storage_gb"], f"{_BLOCK} does not say it: give it")


def _root(host: Host) -> tuple[str, str]:
    """Return the device and the type of what is mounted at the root; the last mount hides those before."""
    found = ("", "")
    for line in host.text(_MOUNTS).splitlines():
        fields = line.split()
        if len(fields) >= 3 and fields[1] == "/":
            found = (fields[0], fields[2][:40])
    return found


def _disks(host: Host, device: str) -> list[str]:
    """Return the whole disks below a device, through partitions, volumes and arrays."""
    names = host.names(_BLOCK)
    name = device.removeprefix("/dev/")
    if name.startswith("mapper/"):
        mapped = name.removeprefix("mapper/")
        name = next((disk for disk in names if host.text(f"{_BLOCK}/{disk}/dm/name") == mapped), "")
    return sorted(_below(host, names, name, _DEEPEST)) if device.startswith("/dev/") else []


def _below(host: Host, names: list[str], name: str, depth: int) -> set[str]:
    if not _NAME.fullmatch(name) or depth == 0:
        return set()
    disk = name if name in names else next((disk for disk in names if host.exists(f"{_BLOCK}/{disk}/{name}")), "")
    if not disk:
        return set()
    parts = host.names(f"{_BLOCK}/{disk}/slaves")
    below = [_below(host, names, part, depth - 1) for part in parts]
    return set().union(*below) if parts else {disk}


def _rotational(disk: str) -> str:
    return f"{_BLOCK}/{disk}/queue/rotational"


def _class(host: Host, disk: str) -> str | None:
    if disk.startswith("nvme"):
        return "nvme"
    return {"0": "ssd", "1": "hdd"}.get(host.text(_rotational(disk)))
