"""Memory modules as the kernel's error counters (EDAC) list them: readable by everyone, where the driver is loaded.

Source of the words: the Linux kernel, `drivers/edac/edac_mc.c` (edac_mem_types) and `edac_mc_sysfs.c` (dev_types).
"""

from __future__ import annotations

import re
from collections import Counter

from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

WHERE = "/sys/devices/system/edac/mc"
_ENTRY = re.compile(r"(dimm|rank)\d{1,4}", re.ASCII)
_KINDS = {"Registered": "R", "Load-Reduced": "L"}
_TYPE = re.compile(r"(Registered|Load-Reduced|Unbuffered)-DDR([2-9])(?:-RAM)?", re.ASCII)
_WIDTH = re.compile(r"x(\d{1,2})", re.ASCII)
_SIZE = re.compile(r"\d{1,9}", re.ASCII)


def read_edac(gathering: Gathering, host: Host) -> None:
    """Read what EDAC lists of the modules: number, size, kind, generation, width of their devices."""
    sizes: Counter[float] = Counter()
    ranks, types, widths = False, set[str](), set[str]()
    for controller in host.names(WHERE):
        for name in host.names(f"{WHERE}/{controller}"):
            entry, folder = _ENTRY.fullmatch(name), f"{WHERE}/{controller}/{name}"
            size = host.text(f"{folder}/size") if entry else ""
            if entry and _SIZE.fullmatch(size) and int(size):
                sizes[int(size) / 1024] += 1
                ranks |= entry[1] == "rank"
                types.add(host.text(f"{folder}/dimm_mem_type"))
                widths.add(host.text(f"{folder}/dimm_dev_type"))
    if not sizes:
        return
    kind = _TYPE.fullmatch(types.pop()) if len(types) == 1 else None
    width = _WIDTH.fullmatch(widths.pop()) if len(widths) == 1 else None
    total = sum(size * number for size, number in sizes.items())
    text = ", ".join(f"{number} x {size:g} GiB" for size, number in sorted(sizes.items()))
    gathering.put("mem_total_gb", total, text, WHERE)
    if not ranks:
        # Some drivers list ranks, of which a module has several.
        gathering.put("dimm_count", sizes.total(), text, WHERE)
        gathering.put("dimm_gb", max(sizes, key=lambda size: (sizes[size], size)), text, WHERE)
        gathering.put("dimm_groups", len(sizes), text, WHERE)
    if kind:
        gathering.put("dimm_type", _KINDS.get(kind[1]), kind[0], WHERE)
        gathering.put("ddr_gen", int(kind[2]), kind[0], WHERE)
        gathering.put("ecc", True if kind[1] in _KINDS else None, kind[0], WHERE)
    gathering.put("dimm_width", int(width[1]) if width else None, width[0] if width else "", WHERE)
