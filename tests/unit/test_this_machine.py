"""Reading the machine at hand, on generated machines: what their commands print and their kernels show."""

import dataclasses
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.datasets._spec_cpu2017_columns import COLUMNS
from perfcast.schema import Kind
from perfcast.this_machine import commands, lscpu
from perfcast.this_machine._memory import installed_gib
from perfcast.this_machine._part import part_of
from perfcast.this_machine.read import read_this_machine

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
    told = {
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
    lines = "".join(f"\t{name}: {value}\n" for name, value in told.items())
    return f"Handle 0x0039, DMI type 17, 84 bytes\nMemory Device\n{lines}\n"


def tables(*modules, ecc="Multi-bit ECC"):
    array = f"\tLocation: System Board\n\tUse: System Memory\n\tError Correction Type: {ecc}\n"
    start = f"# dmidecode 3.3\nHandle 0x0031, DMI type 16, 23 bytes\nPhysical Memory Array\n{array}\n"
    return start + "".join(modules)


EMPTY = module(Size="No Module Installed", Type="Unknown", Speed="Unknown", Rank="Unknown")


def plant(root, files):
    """Write files below a root; the value None makes a folder."""
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_text(text)


def cpus(*siblings, per_package=1000):
    """Return the kernel's topology of processors, each given by the list of its core's threads."""
    return {
        f"/sys/devices/system/cpu/cpu{number}/topology/{name}": value
        for number, threads in enumerate(siblings)
        for name, value in (("core_cpus_list", threads), ("physical_package_id", str(number // per_package)))
    }


def read(tmp_path, said, files=None):
    """Read a machine whose commands print `said`; a command that is absent there does not exist."""

    def run(command):
        answer = said.get(" ".join(command), FileNotFoundError(command[0]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    plant(tmp_path, files or {})
    return read_this_machine(run, tmp_path)


def values(machine):
    return {reading.column: reading.value for reading in machine.readings}


def check(machine):
    """Check what holds of every answer."""
    names = [reading.column for reading in machine.readings]
    assert len(names) == len(set(names))
    assert not set(names) & set(machine.not_read)
    assert {"part_key", "chips", "mem_total_gb", "compiler_vendor", "l3_mb_per_chip"} <= {*names, *machine.not_read}
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
    assert all(len(why.splitlines()) == 1 for why in (*machine.not_read.values(), *machine.notes))


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
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "/sys/block/dm-0/dm/name": "secret--host-root\n",
    "/sys/block/dm-0/slaves/sda3": None,
    "/sys/block/sda/sda3/partition": "3\n",
    "/sys/block/sda/size": "1875385008\n",
    "/sys/block/sda/queue/rotational": "0\n",
}


@pytest.mark.parametrize("spelling", ["json", "text"])
def test_a_server_of_two_sockets_is_read_whole(tmp_path, spelling):
    printed = {"lscpu -J": as_json(XEON)}
    if spelling == "text":
        printed = {"lscpu -J": subprocess.CalledProcessError(1, "lscpu"), "lscpu": as_text(XEON)}
    modules = tables(*[module(**{"Configured Memory Speed": "2666 MT/s"})] * 12, *[EMPTY] * 12)
    said = {**printed, "uname -r": "5.14.0-284.11.1.el9_2.x86_64\n", "dmidecode -t memory": modules}
    machine = read(tmp_path, said, XEON_FILES)
    check(machine)
    assert values(machine) == {
        "part_key": "xeon gold 6252",
        "cpu_vendor": "Intel",
        "isa": "x86",
        "arch": "x86_64",
        "base_mhz": 2100,
        "max_turbo_mhz": 3700,
        "l1i_kb": 32,
        "l1d_kb": 32,
        "l2_kb_per_core": 1024,
        "l3_mb_per_chip": 35.75,
        "l3_slice_mb": 35.75,
        "l3_cores_per_slice": 24,
        "simd_bits": 512,
        "mem_total_gb": 384,
        "hbm_gb": 0,
        "dimm_count": 12,
        "dimm_gb": 32,
        "dimm_groups": 1,
        "dimm_ranks": 2,
        "dimm_type": "R",
        "ecc": 1,
        "ddr_gen": 4,
        "mem_rated_mts": 2933,
        "mem_running_mts": 2667,
        "hw_vendor": "Dell",
        "chips": 2,
        "cores_enabled_total": 48,
        "threads_per_core": 2,
        "os_name": "RHEL",
        "os_version": "9.2",
        "kernel_series": "5.14",
        "file_system": "xfs",
        "storage_class": "ssd",
        "storage_gb": 960,
    }
    # kernel 5.14 does not name the matrix unit even where there is one
    assert "hide" in machine.not_read["has_amx"]
    assert machine.notes == ()
    assert {"compiler_vendor", "base_ptr", "dimm_width"} <= set(machine.not_read)
    assert "choice" in machine.not_read["compiler_vendor"]


def test_nothing_that_names_the_machine_is_in_the_answer(tmp_path):
    said = {"lscpu -J": as_json(XEON), "uname -r": "5.14.0\n", "dmidecode -t memory": tables(module())}
    asked = []

    def run(command):
        asked.append(list(command))
        return said.get(" ".join(command), "secret-host 192.0.2.7")

    plant(tmp_path, XEON_FILES)
    text = repr(read_this_machine(run, tmp_path))
    assert "960" in text
    assert not [secret for secret in SECRETS if secret in text]
    for command in asked:
        assert command[0] in {"lscpu", "uname", "dmidecode"}
        assert command[0] != "uname" or command[1] in {"-r", "-m"}


def test_memory_at_its_rated_speed_has_no_running_rate_as_in_published_results(tmp_path):
    machine = read(tmp_path, {"dmidecode -t memory": tables(module())})
    assert values(machine)["mem_rated_mts"] == 2933
    assert "rated" in machine.not_read["mem_running_mts"]


EPYC = [
    ("Architecture", "x86_64"),
    ("CPU(s)", "192"),
    ("On-line CPU(s) list", "0-191"),
    ("Vendor ID", "AuthenticAMD"),
    ("Model name", "AMD EPYC 9654 96-Core Processor"),
    ("CPU family", "25"),
    ("Thread(s) per core", "1"),
    ("Core(s) per socket", "96"),
    ("Socket(s)", "2"),
    ("Frequency boost", "enabled"),
    ("CPU max MHz", "3707.8120"),
    ("L1d cache", "6 MiB (192 instances)"),
    ("L1i cache", "6 MiB (192 instances)"),
    ("L2 cache", "192 MiB (192 instances)"),
    ("L3 cache", "768 MiB (24 instances)"),
    ("NUMA node(s)", "8"),
    ("Flags", "avx avx2 avx512f"),
]


def test_an_epyc_with_four_nodes_a_socket_and_no_smt(tmp_path):
    ddr5 = {"Size": "64 GB", "Total Width": "80 bits", "Type": "DDR5", "Speed": "4800 MT/s"}
    devices = [module(**ddr5, **{"Configured Memory Speed": "4800 MT/s"})] * 24
    files = {
        "/etc/os-release": OS["sles"],
        "/sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq": "2400\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "amd-pstate-epp\n",
        "/proc/mounts": "tmpfs / tmpfs rw 0 0\n",
        **cpus(*map(str, range(192)), per_package=96),
    }
    said = {"lscpu -J": as_json(EPYC), "uname -r": "5.14.21-150500.53-default", "dmidecode -t memory": tables(*devices)}
    machine = read(tmp_path, said, files)
    check(machine)
    found = values(machine)
    assert {name: found[name] for name in ("part_key", "chips", "cores_enabled_total", "threads_per_core")} == {
        "part_key": "epyc 9654",
        "chips": 2,
        "cores_enabled_total": 192,
        "threads_per_core": 1,
    }
    assert (found["l3_mb_per_chip"], found["l3_slice_mb"], found["l3_cores_per_slice"]) == (384, 32, 8)
    assert (found["base_mhz"], found["max_turbo_mhz"]) == (2400, 3708)
    # AVX-512 runs on units of 256 bits there
    assert (found["simd_bits"], found["has_amx"]) == (256, 0)
    assert (found["mem_total_gb"], found["ddr_gen"], found["mem_rated_mts"]) == (1536, 5, 4800)
    assert (found["os_name"], found["os_version"], found["storage_class"]) == ("SLES", "15.5", "ram")


ALTRA = [
    ("Architecture", "aarch64"),
    ("CPU(s)", "160"),
    ("On-line CPU(s) list", "0-159"),
    ("Vendor ID", "ARM"),
    ("BIOS Vendor ID", "Ampere(R)"),
    ("Model name", "Neoverse-N1"),
    ("BIOS Model name", "Ampere(R) Altra(R) Processor Q80-30 CPU @ 3.0GHz"),
    ("Thread(s) per core", "1"),
    ("Core(s) per cluster", "80"),
    ("Socket(s)", "-"),
    ("Cluster(s)", "2"),
    ("Frequency boost", "disabled"),
    ("CPU max MHz", "3000.0000"),
    ("L1d cache", "10 MiB (160 instances)"),
    ("L1i cache", "10 MiB (160 instances)"),
    ("L2 cache", "160 MiB (160 instances)"),
    ("Flags", "fp asimd aes"),
]


def test_an_arm_server_is_named_by_its_firmware_and_its_sockets_by_the_kernel(tmp_path):
    packages = {
        f"/sys/devices/system/cpu/cpu{number}/topology/physical_package_id": str(number // 80) for number in range(160)
    }
    machine = read(tmp_path, {"lscpu -J": as_json(ALTRA)}, {**packages, "/etc/os-release": OS["ubuntu"]})
    check(machine)
    found = values(machine)
    assert (found["part_key"], found["cpu_vendor"], found["isa"]) == ("altra q80-30", "Ampere", "arm")
    assert (found["chips"], found["cores_enabled_total"], found["threads_per_core"]) == (2, 160, 1)
    assert (found["l1d_kb"], found["l2_kb_per_core"]) == (64, 1024)
    assert (found["max_turbo_mhz"], found["simd_bits"], found["has_amx"]) == (3000, 128, 0)
    # the clock that lscpu appends to the firmware's name is not the base clock
    assert "base_mhz" in machine.not_read


def test_a_rented_arm_machine_names_a_design_which_is_no_part(tmp_path):
    fields = [
        ("Architecture", "aarch64"),
        ("CPU(s)", "2"),
        ("On-line CPU(s) list", "0,1"),
        ("Vendor ID", "ARM"),
        ("Model name", "Neoverse-V1"),
        ("Thread(s) per core", "1"),
        ("Core(s) per socket", "2"),
        ("Socket(s)", "1"),
        ("Flags", "asimd sve"),
    ]
    firmware = {"/sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "/sys/class/dmi/id/product_name": "m7g.large\n"}
    machine = read(tmp_path, {"lscpu -J": as_json(fields)}, firmware)
    check(machine)
    assert "design" in machine.not_read["part_key"]
    assert "SVE" in machine.not_read["simd_bits"]
    assert "cpu_vendor" in machine.not_read
    assert "hw_vendor" in machine.not_read
    assert "Amazon EC2" in machine.notes[0]
    firmware["/sys/class/dmi/id/product_name"] = "m7g.metal\n"
    assert values(read(tmp_path, {"lscpu -J": as_json(fields)}, firmware))["hw_vendor"] == "Amazon EC2"


def guest(name, **changed):
    told = {
        "Architecture": "x86_64",
        "CPU(s)": "4",
        "On-line CPU(s) list": "0-3",
        "Vendor ID": "GenuineIntel",
        "Model name": name,
        "Thread(s) per core": "1",
        "Core(s) per socket": "4",
        "Socket(s)": "1",
        "Hypervisor vendor": "KVM",
        "Virtualization type": "full",
        "CPU max MHz": "3500.0000",
        "L1d cache": "128 KiB (4 instances)",
        "L2 cache": "16 MiB (4 instances)",
        "L3 cache": "16 MiB (1 instance)",
        "Flags": "avx avx2",
        **changed,
    }
    return {"lscpu -J": as_json([*told.items()])}


def test_a_virtual_machine_without_the_firmwares_tables(tmp_path):
    files = {
        "/proc/meminfo": "MemTotal:       16393216 kB\n",
        "/proc/mounts": "/dev/vda1 / ext4 rw 0 0\n",
        "/sys/block/vda/vda1/partition": "1\n",
        "/sys/block/vda/size": "209715200\n",
        "/sys/block/vda/queue/rotational": "1\n",
        "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    }
    said = {**guest("Intel Xeon Processor (Skylake, IBRS)"), "dmidecode -t memory": tables(module(Type="RAM"))}
    machine = read(tmp_path, said, files)
    check(machine)
    found = values(machine)
    assert "no one part" in machine.not_read["part_key"]
    assert found["mem_total_gb"] == 32, "the hypervisor's table states what was given"
    assert (found["chips"], found["cores_enabled_total"], found["l2_kb_per_core"]) == (1, 4, 4096)
    assert (found["file_system"], found["storage_gb"]) == ("ext4", 107)
    assert not {"simd_bits", "has_amx", "storage_class", "hw_vendor", "max_turbo_mhz", "dimm_count"} & set(found)
    assert "virtual machine (hypervisor: KVM)" in machine.notes[0]
    del said["dmidecode -t memory"]
    machine = read(tmp_path, said, files)
    assert values(machine)["mem_total_gb"] == 16
    assert any("15.63 GiB" in note for note in machine.notes)


def test_a_hypervisors_caches_do_not_stand_in_for_those_of_a_known_part(tmp_path):
    found = values(read(tmp_path, guest("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz")))
    assert found["part_key"] == "xeon platinum 8375c"
    assert found["base_mhz"] == 2900
    assert not {"l2_kb_per_core", "l3_mb_per_chip", "simd_bits"} & set(found)


def test_a_hypervisors_sockets_of_one_processor_each_are_no_chips(tmp_path):
    machine = read(tmp_path, guest("Common KVM processor", **{"Core(s) per socket": "1", "Socket(s)": "4"}))
    assert values(machine)["cores_enabled_total"] == 4
    assert "socket of its own" in machine.not_read["chips"]
    assert "l3_mb_per_chip" in machine.not_read


LAPTOP = [
    ("Architecture", "x86_64"),
    ("CPU(s)", "16"),
    ("On-line CPU(s) list", "0-15"),
    ("Vendor ID", "GenuineIntel"),
    ("Model name", "12th Gen Intel(R) Core(TM) i7-1260P"),
    ("Thread(s) per core", "2"),
    ("Core(s) per socket", "12"),
    ("Socket(s)", "1"),
    ("CPU max MHz", "4700.0000"),
    ("L1d cache", "448 KiB (12 instances)"),
    ("L2 cache", "9 MiB (6 instances)"),
    ("L3 cache", "18 MiB (1 instance)"),
    ("Flags", "avx avx2 avx_vnni"),
]
PAIRS = ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7", *map(str, range(8, 16))]


@pytest.mark.parametrize("topology", [{}, cpus(*PAIRS)])
def test_a_laptop_of_two_kinds_of_cores(tmp_path, topology):
    chips = module(
        **{"Size": "8 GB", "Form Factor": "Row Of Chips", "Type": "LPDDR5", "Type Detail": "Synchronous", "Rank": "1"}
    )
    files = {
        **topology,
        "/etc/os-release": OS["arch"],
        "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency": "2100000\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        "/proc/mounts": "/dev/nvme0n1p2 / btrfs rw 0 0\n",
        "/sys/block/nvme0n1/nvme0n1p2/partition": "2\n",
        "/sys/block/nvme0n1/size": "1000215216\n",
        "/sys/class/dmi/id/sys_vendor": "LENOVO\n",
    }
    said = {"lscpu -J": as_json(LAPTOP), "dmidecode -t memory": tables(chips, chips, ecc="None"), "uname -r": "6.6.1"}
    machine = read(tmp_path, said, files)
    check(machine)
    found = values(machine)
    assert (found["part_key"], found["cores_enabled_total"], found["chips"]) == ("core i7-1260p", 12, 1)
    assert (found["base_mhz"], found["max_turbo_mhz"], found["l3_mb_per_chip"]) == (2100, 4700, 18)
    assert (found["mem_total_gb"], found["has_amx"], found["hw_vendor"]) == (16, 0, "Lenovo")
    assert (found["storage_class"], found["storage_gb"]) == ("nvme", 512)
    assert not {"threads_per_core", "l1d_kb", "l2_kb_per_core", "simd_bits", "dimm_count", "os_name"} & set(found)
    assert "soldered" in machine.not_read["dimm_count"]
    assert "Arch Linux" in machine.not_read["os_name"]
    assert any("cores differ" in note for note in machine.notes)


def test_a_container_where_little_is_to_be_seen(tmp_path):
    files = {
        "/.dockerenv": "",
        "/proc/mounts": "overlay / overlay rw 0 0\n",
        "/sys/fs/cgroup/cpu.max": "400000 100000\n",
        "/sys/fs/cgroup/memory.max": "8589934592\n",
        "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6252 CPU @ "
        "2.10GHz\nflags\t\t: avx avx512f\n\nprocessor\t: 1\nmodel name\t: other\n",
    }
    machine = read(tmp_path, {"uname -m": "x86_64\n"}, files)
    check(machine)
    found = values(machine)
    assert (found["part_key"], found["cpu_vendor"], found["arch"]) == ("xeon gold 6252", "Intel", "x86_64")
    assert "container" in machine.not_read["file_system"]
    assert "not installed" in machine.not_read["dimm_count"]
    text = " ".join(machine.notes)
    assert "time of 4 processors and 8 GiB" in text
    assert "lscpu" in text


def test_a_machine_that_says_nothing_gives_reasons_only(tmp_path):
    machine = read(tmp_path, {})
    check(machine)
    assert machine.readings == ()
    assert {"chips", "os_name", "isa", "hw_vendor", "storage_gb", "mem_total_gb"} <= set(machine.not_read)


def test_dmidecode_without_root_says_what_to_do_and_the_kernels_counters_help(tmp_path):
    folder = "/sys/devices/system/edac/mc"
    counters = {
        f"{folder}/mc{controller}/dimm{slot}/{name}": text
        for controller in range(2)
        for slot in range(4)
        for name, text in (
            ("size", "32768\n"),
            ("dimm_mem_type", "Registered-DDR4\n"),
            ("dimm_dev_type", "x4\n"),
        )
    }
    said = {"dmidecode -t memory": subprocess.CalledProcessError(1, "dmidecode")}
    machine = read(tmp_path, said, counters | {f"{folder}/mc0/dimm5/size": "0\n"})
    check(machine)
    found = values(machine)
    assert (found["mem_total_gb"], found["dimm_count"], found["dimm_gb"], found["dimm_groups"]) == (256, 8, 32, 1)
    assert (found["dimm_type"], found["ddr_gen"], found["dimm_width"], found["ecc"]) == ("R", 4, 4, 1)
    assert "needs root: run with sudo" in machine.not_read["mem_rated_mts"]


@pytest.mark.parametrize(
    ("changes", "letter", "ecc"),
    [
        ({"Type Detail": "Synchronous LRDIMM"}, "L", 1),
        ({"Type Detail": "Synchronous Unbuffered (Unregistered)"}, "E", 1),
        ({"Type Detail": "Synchronous Unbuffered (Unregistered)", "Total Width": "64 bits"}, "U", 0),
        ({"Form Factor": "SODIMM", "Type Detail": "Synchronous", "Total Width": "64 bits"}, "S", 0),
        ({"Type Detail": "Synchronous", "Total Width": "Unknown"}, None, None),
    ],
)
def test_kinds_of_modules(tmp_path, changes, letter, ecc):
    found = values(read(tmp_path, {"dmidecode -t memory": tables(module(**changes), ecc="Unknown")}))
    assert (found.get("dimm_type"), found.get("ecc")) == (letter, ecc)


def test_mixed_modules_are_told_by_the_largest_group_and_run_as_the_slowest(tmp_path):
    large = module(Size="64 GB", Rank="4", Speed="3200 MT/s")
    hbm = module(**{"Size": "16 GB", "Type": "HBM2", "Form Factor": "Unknown", "Speed": "3200 MT/s"})
    flash = module(**{"Size": "128 GB", "Type": "Logical non-volatile device"})
    old = module(Size="16384 MB", **{"Configured Memory Speed": "Unknown", "Configured Clock Speed": "2400 MHz"})
    found = values(read(tmp_path, {"dmidecode -t memory": tables(large, large, old, hbm, flash)}))
    assert (found["mem_total_gb"], found["hbm_gb"]) == (64 + 64 + 16 + 16, 16)
    assert (found["dimm_count"], found["dimm_groups"], found["dimm_gb"], found["dimm_ranks"]) == (3, 2, 64, 4)
    assert (found["mem_rated_mts"], found["mem_running_mts"]) == (2933, 2400)


@pytest.mark.parametrize(
    ("files", "changes", "why"),
    [
        ({"/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n"}, {}, "switched off"),
        ({"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n"}, {}, "acpi-cpufreq"),
        ({}, {"Frequency boost": "disabled"}, "switched off"),
        ({}, {"CPU max MHz": "2101.0000"}, "not known"),
    ],
)
def test_the_drivers_highest_clock_is_not_always_the_turbo(tmp_path, files, changes, why):
    machine = read(tmp_path, {"lscpu -J": as_json([*(dict(XEON) | changes).items()])}, files)
    assert why in machine.not_read["max_turbo_mhz"]


def test_older_lscpu_states_one_instance_and_newer_ones_the_sum(tmp_path):
    told = dict(XEON) | {"L1d cache": "32K", "L2 cache": "1024K", "L3 cache": "36608K"}
    machine = read(tmp_path, {"lscpu -J": as_json([*told.items()])})
    found = values(machine)
    assert (found["l1d_kb"], found["l2_kb_per_core"]) == (32, 1024)
    assert "too old" in machine.not_read["l3_mb_per_chip"]
    told |= {"L1d cache": "1.5 MiB", "L3 cache": "71.5 MiB"}
    found = values(read(tmp_path, {"lscpu -J": as_json([*told.items()])}))
    assert (found["l1d_kb"], found["l3_mb_per_chip"]) == (32, 35.75)
    assert "l3_slice_mb" not in found


def test_caches_of_the_kernels_list_are_counted_once_each(tmp_path):
    files = cpus("0-1", "0-1", "2-3", "2-3")
    for cpu in range(4):
        for index, level, kind, size, sharing in (
            (0, 1, "Data", "48K", "0-1" if cpu < 2 else "2-3"),
            (1, 3, "Unified", "32768K", "0-3"),
        ):
            folder = f"/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            files |= {f"{folder}/level": str(level), f"{folder}/type": kind, f"{folder}/size": size}
            files |= {f"{folder}/shared_cpu_list": sharing}
    found = values(read(tmp_path, {}, files))
    assert (found["cores_enabled_total"], found["threads_per_core"], found["chips"]) == (2, 2, 1)
    assert (found["l1d_kb"], found["l3_mb_per_chip"]) == (48, 32)


@pytest.mark.parametrize(
    ("text", "vendor"),
    [
        ("xFusion", "xFusion"),
        ("GIGABYTE", "Gigabyte"),
        ("Giga Computing", "Gigabyte"),
        ("Supermicro", "Supermicro"),
        ("To Be Filled By O.E.M.", None),
        ("System manufacturer", None),
        ("xxxx", None),
        (" ", None),
    ],
)
def test_the_maker_that_the_firmware_names(tmp_path, text, vendor):
    assert values(read(tmp_path, {}, {"/sys/class/dmi/id/sys_vendor": text})).get("hw_vendor") == vendor


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/sys/block/sda/queue/rotational": "1\n"}, "hdd"),
        ({"/sys/block/sda/queue/rotational": "1\n", "/sys/block/sdb/queue/rotational": "0\n"}, None),
        ({}, None),
    ],
)
def test_the_class_of_an_array_is_that_of_all_its_disks(tmp_path, files, expected):
    disks = {f"/sys/block/{disk}/size": "2000000000\n" for disk in ("sda", "sdb")}
    disks |= {f"/sys/block/md0/slaves/{disk}": None for disk in ("sda", "sdb")}
    mounts = {"/proc/mounts": "/dev/md0 / ext4 rw 0 0\n", "/sys/block/sdb/queue/rotational": "1\n"}
    found = values(read(tmp_path, {}, {**disks, **mounts, **files}))
    assert found.get("storage_class") == expected
    assert found["storage_gb"] == 2048


def test_values_that_cannot_be_are_not_read(tmp_path):
    told = dict(XEON) | {"Socket(s)": "900", "CPU max MHz": "99999.0"}
    machine = read(tmp_path, {"lscpu -J": as_json([*told.items()])})
    check(machine)
    assert "cannot be: 1 to 64 can" in machine.not_read["chips"]
    assert "cannot be" in machine.not_read["max_turbo_mhz"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "xeon e5-2680 v4"),
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon platinum 8480+"),
        ("AMD Ryzen 9 7940HS w/ Radeon 780M Graphics", "ryzen 9 7940hs"),
        ("POWER9 (architected), altivec supported", "power9"),
        ("AWS Graviton3 AWS Graviton3 CPU @ 2.6GHz", "graviton3"),
        ("HUAWEI Kunpeng 920-7260", "kunpeng 920 7260"),
        ("AMD EPYC", None),
        ("AMD EPYC-Milan-v2 Processor", None),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", None),
        ("Intel Xeon E3-12xx v2 (Ivy Bridge)", None),
        ("QEMU Virtual CPU version 2.5+", None),
        ("Genuine Intel(R) CPU 0000%@", None),
        ("Neoverse-N1", None),
        ("Not Specified", None),
        ("", None),
    ],
)
def test_names_that_name_a_part(name, part):
    assert part_of(name) == part


@pytest.mark.parametrize(
    ("managed", "installed"),
    [(376.5, 384), (1007.3, 1024), (15.3, 16), (62.5, 64), (23.54, 24), (754, 768), (283, None), (0, None)],
)
def test_the_capacity_that_modules_add_up_to(managed, installed):
    assert installed_gib(managed) == installed


def test_lists_of_processors():
    assert lscpu.processors_in("0-63,128") == 65
    assert lscpu.processors_in("") == lscpu.processors_in("x-3") == lscpu.processors_in("5-2") == 0


def test_two_readings_are_equal(tmp_path):
    said = {"lscpu -J": as_json(XEON), "dmidecode -t memory": tables(module(), module(Size="16 GB"))}
    assert read(tmp_path, said, XEON_FILES) == read(tmp_path, said, XEON_FILES)
    assert dataclasses.is_dataclass(read(tmp_path, said).readings[0])


# parts of real lines in any order reach further than letters at random
LINES = st.sampled_from(
    [
        *as_text(XEON).splitlines(),
        *as_text(ALTRA).splitlines(),
        *module().splitlines(),
        *tables(module(Size="99999 TB", Speed="0 MT/s", Type="DDR9", Rank="0")).splitlines(),
        "Socket(s): ²",
        "Socket(s): 0",
        "Core(s) per socket: 99999999999",
        "L3 cache: 1.2.3 MiB (0 instances)",
        "L2 cache: 0 B (1 instance)",
        "On-line CPU(s) list: 9-1,-,7",
        "CPU max MHz: 1e999",
        "Vendor ID: ",
    ]
)
GARBLED = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(LINES, st.text(max_size=40)), max_size=40).map("\n".join),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["lscpu", "field", "data"]), inner),
        max_leaves=12,
    ).map(json.dumps),
)


@settings(max_examples=150, deadline=None)
@given(GARBLED, GARBLED, GARBLED, st.text(max_size=60))
def test_garbled_outputs_never_raise_and_never_leave_the_bounds(said, plain, modules, other):
    answers = {"lscpu -J": said, "lscpu": plain, "dmidecode -t memory": modules}
    with TemporaryDirectory() as folder:
        check(read_this_machine(lambda command: answers.get(" ".join(command), other), Path(folder)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60), min_size=12, max_size=12))
def test_garbled_files_never_raise(texts):
    paths = [
        "/etc/os-release",
        "/proc/meminfo",
        "/proc/mounts",
        "/proc/cpuinfo",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
        "/sys/devices/system/cpu/cpu0/topology/physical_package_id",
        "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency",
        "/sys/devices/system/edac/mc/mc0/dimm0/size",
        "/sys/block/sda/size",
        "/sys/fs/cgroup/cpu.max",
        "/sys/fs/cgroup/memory.max",
    ]
    with TemporaryDirectory() as folder:
        plant(Path(folder), dict(zip(paths, texts, strict=True)))
        check(read_this_machine(lambda command: as_text(XEON), Path(folder)))


def test_a_command_is_run_in_plain_language_and_cut_off(monkeypatch):
    monkeypatch.setattr(commands, "MAX_CHARACTERS", 1000)
    assert commands.run_command(["sh", "-c", "echo $LC_ALL"]) == "C\n"
    assert len(commands.run_command(["sh", "-c", "yes | head -c 100000"])) == 1000
    with pytest.raises(subprocess.CalledProcessError):
        commands.run_command(["sh", "-c", "exit 3"])
    with pytest.raises(FileNotFoundError):
        commands.run_command(["no-such-command-of-any-machine"])
    monkeypatch.setattr(commands, "_SECONDS", 0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        commands.run_command(["sleep", "30"])


def test_this_very_machine_is_read():
    check(read_this_machine())
