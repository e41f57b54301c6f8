"""Outputs of lscpu and dmidecode and files of the kernel, as `--this-machine` reads them."""

from __future__ import annotations

import shutil

from _refusing import FOLDER

from perfcast.domains.servers.hardware_info import parse_modules, read_hardware
from perfcast.microbench.machine import count_cpus, parse_cache_size, parse_json_fields, parse_text_fields

_LSCPU = (
    "Architecture: x86_64\nCPU(s): 96\nOn-line CPU(s) list: 0-95\nVendor ID: GenuineIntel\n"
    "Model name: Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz\nThread(s) per core: 2\nCore(s) per socket: 24\n"
    "Socket(s): 2\nCPU max MHz: 3700.0000\nL1d cache: 1.5 MiB (48 instances)\nL3 cache: 71.5 MiB (2 instances)\n"
    "Flags: fpu sse4_2 avx avx2 avx512f\n"
)
_DMI = (
    "Handle 0x0031, DMI type 16, 23 bytes\nPhysical Memory Array\n\tUse: System Memory\n"
    "\tError Correction Type: Multi-bit ECC\n\nHandle 0x0039, DMI type 17, 84 bytes\nMemory Device\n"
    "\tTotal Width: 72 bits\n\tData Width: 64 bits\n\tSize: 32 GB\n\tForm Factor: DIMM\n\tType: DDR4\n"
    "\tSpeed: 2933 MT/s\n\tPart Number: M393A4K40DB2-CVF\n\tRank: 2\n\tConfigured Memory Speed: 2933 MT/s\n\n"
)
FILES = (
    *("etc/os-release", "proc/meminfo", "proc/mounts", "sys/class/dmi/id/product_name"),
    "sys/class/dmi/id/sys_vendor",
)
SEEDS = [
    b"\x00" + _LSCPU.encode() + b"\xff" + _DMI.encode() + b'\xffPRETTY_NAME="SUSE Linux Enterprise Server 15 SP5"',
    b'\x01{"lscpu": [{"field": "CPU(s):", "data": "96", "children": [{"field": "Socket(s):", "data": null}]}]}',
    b"\x02MemTotal:       394839040 kB\n",
]


def check(data: bytes) -> None:
    """Read a machine whose tools print the parts of the input."""
    if not data:
        return
    parts = [part.decode("utf-8", errors="replace") for part in data[1:].split(b"\xff")]
    for text in parts:
        parse_json_fields(text), parse_text_fields(text), parse_cache_size(text), count_cpus(text), parse_modules(text)
    root = FOLDER / "root"
    shutil.rmtree(root, ignore_errors=True)
    output = parts[2] if len(parts) > 2 else parts[0]
    path = root / FILES[data[0] % len(FILES)]
    path.parent.mkdir(parents=True)
    path.write_text(output, encoding="utf-8")

    def run(command: object) -> str:
        words = " ".join(command) if isinstance(command, (list, tuple)) else ""
        if words.startswith("lscpu"):
            return parts[0]
        if words.startswith("dmidecode") and len(parts) > 1:
            return parts[1]
        raise FileNotFoundError(words)

    hardware = read_hardware(run, root)
    for reading in hardware.readings:
        if not reading.text.isprintable():
            raise AssertionError(reading)
