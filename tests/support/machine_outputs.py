"""Outputs of commands and files of generated machines, and functions that write and read them."""

import json

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS
from perfcast.domains.servers.hardware_info import read_hardware
from perfcast.schema.table import Kind

DECLARED = {column.name: column for column in COLUMNS}
SECRETS = ("secret-host", "SN-4711", "TAG-0815", "4c4c4544", "192.0.2.7", "M393A4K40DB2")
INTEL_FLAGS = "fpu sse4_2 avx avx2 avx512f avx512_vnni"
OS = {
    "rhel": 'NAME="Red Hat Enterprise Linux"\nPRETTY_NAME="Red Hat Enterprise Linux 9.2 (Plow)"\nVERSION_ID="9.2"\n',
    "sles": 'PRETTY_NAME="SUSE Linux Enterprise Server 15 SP5"\n',
    "ubuntu": "PRETTY_NAME='Ubuntu 22.04.3 LTS'\n",
    "arch": 'PRETTY_NAME="Arch Linux"\n',
}


def as_json(fields):
    """Return fields as `lscpu -J` prints them, the last two inside the first."""
    entries = [{"field": f"{name}:", "data": value} for name, value in fields]
    entries[0]["children"] = entries[-2:]
    return json.dumps({"lscpu": entries[:-2]})


def as_text(fields):
    return "".join(f"{name + ':':<32} {value}\n" for name, value in fields)


def module(**values):
    """Return a memory device as dmidecode prints it."""
    fields = {
        "Array Handle": "0x0031",
        "Total Width": "72 bits",
        "Data Width": "64 bits",
        "Size": "32 GB",
        "Form Factor": "DIMM",
        "Locator": "A1",
        "Type": "DDR4",
        "Type Detail": "Synchronous Registered (Buffered)",
        "Speed": "2933 MT/s",
        "Serial Number": "SN-4711",
        "Asset Tag": "TAG-0815",
        "Part Number": "M393A4K40DB2-CVF",
        "Rank": "2",
        "Configured Memory Speed": "2933 MT/s",
        **values,
    }
    lines = "".join(f"\t{name}: {value}\n" for name, value in fields.items())
    return f"Handle 0x0039, DMI type 17, 84 bytes\nMemory Device\n{lines}\n"


def tables(*modules, ecc="Multi-bit ECC"):
    array = f"\tLocation: System Board\n\tUse: System Memory\n\tError Correction Type: {ecc}\n"
    start = f"# dmidecode 3.3\nHandle 0x0031, DMI type 16, 23 bytes\nPhysical Memory Array\n{array}\n"
    return start + "".join(modules)


EMPTY = module(Size="No Module Installed", Type="Unknown", Speed="Unknown", Rank="Unknown")


def plant(root, files):
    """Write files below a root; the value None makes a folder."""
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_text(text)


def read(tmp_path, outputs, files=None):
    """Read a machine with the given outputs by command; other commands do not exist."""

    def run(command):
        answer = outputs.get(" ".join(command), FileNotFoundError(command[0]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    plant(tmp_path, files or {})
    return read_hardware(run, tmp_path)


def values(machine):
    return {reading.column: reading.value for reading in machine.readings}


def check(machine):
    """Check the properties of every result."""
    names = [reading.column for reading in machine.readings]
    assert len(names) == len(set(names))
    assert not set(names) & set(machine.not_read)
    assert {"cpu_model", "chips", "mem_total_gb", "compiler_vendor", "l3_mb_per_chip"} <= {*names, *machine.not_read}
    for reading in machine.readings:
        column = DECLARED[reading.column]
        if column.kind is Kind.NUMERICAL:
            assert type(reading.value) is float
            assert column.low is None or column.low <= reading.value
            assert column.high is None or reading.value <= column.high
        else:
            assert type(reading.value) is str
            assert reading.value
        assert reading.where
        assert len(reading.text) <= 120
        assert reading.text.isprintable()
    assert all(len(text.splitlines()) == 1 for text in (*machine.not_read.values(), *machine.notes))


XEON = [
    ("Architecture", "x86_64"),
    ("CPU(s)", "96"),
    ("On-line CPU(s) list", "0-95"),
    ("Vendor ID", "GenuineIntel"),
    ("BIOS Vendor ID", "Intel(R) Corporation"),
    ("Model name", "Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz"),
    ("BIOS Model name", "Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz"),
    ("CPU family", "6"),
    ("Thread(s) per core", "2"),
    ("Core(s) per socket", "24"),
    ("Socket(s)", "2"),
    ("CPU max MHz", "3700.0000"),
    ("CPU min MHz", "1000.0000"),
    ("Virtualization", "VT-x"),
    ("L1d cache", "1.5 MiB (48 instances)"),
    ("L1i cache", "1.5 MiB (48 instances)"),
    ("L2 cache", "48 MiB (48 instances)"),
    ("L3 cache", "71.5 MiB (2 instances)"),
    ("NUMA node(s)", "2"),
    ("Flags", INTEL_FLAGS),
]
XEON_FILES = {
    "/etc/os-release": OS["rhel"],
    "/etc/hostname": "secret-host\n",
    "/proc/meminfo": "MemTotal:       394839040 kB\nMemFree:        1 kB\n",
    "/proc/mounts": "proc /proc proc rw 0 0\n/dev/mapper/secret--host-root / xfs rw 0 0\n",
    "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "/sys/class/dmi/id/product_name": "PowerEdge R640\n",
    "/sys/class/dmi/id/product_serial": "SN-4711\n",
    "/sys/class/dmi/id/product_uuid": "4c4c4544\n",
    "/sys/class/dmi/id/chassis_asset_tag": "TAG-0815\n",
}

ALTRA = [
    ("Architecture", "aarch64"),
    ("CPU(s)", "160"),
    ("On-line CPU(s) list", "0-159"),
    ("Vendor ID", "ARM"),
    ("BIOS Vendor ID", "Ampere(R)"),
    ("Model name", "Neoverse-N1"),
    ("BIOS Model name", "Ampere(R) Altra(R) Processor Q80-30 CPU @ 3.0GHz"),
    ("Thread(s) per core", "1"),
    ("Core(s) per socket", "80"),
    ("Socket(s)", "2"),
    ("Frequency boost", "disabled"),
    ("CPU max MHz", "3000.0000"),
    ("L1d cache", "10 MiB (160 instances)"),
    ("L1i cache", "10 MiB (160 instances)"),
    ("L2 cache", "160 MiB (160 instances)"),
    ("Flags", "fp asimd aes"),
]
