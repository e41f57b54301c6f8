"""Reading of generated machines from the outputs of their commands and the files of their kernels."""

import subprocess

import pytest
from machine_outputs import (
    ALTRA,
    EMPTY,
    OS,
    SECRETS,
    XEON,
    XEON_FILES,
    as_json,
    as_text,
    check,
    lsblk,
    module,
    plant,
    read,
    tables,
    values,
)

from perfcast.domains.servers.hardware_info import read_hardware


@pytest.mark.parametrize("spelling", ["json", "text"])
def test_read_hardware_reads_a_server_with_two_sockets(tmp_path, spelling):
    printed = {"lscpu -J": as_json(XEON)}
    if spelling == "text":
        printed = {"lscpu -J": subprocess.CalledProcessError(1, "lscpu"), "lscpu": as_text(XEON)}
    modules = tables(*[module(**{"Configured Memory Speed": "2666 MT/s"})] * 12, *[EMPTY] * 12)
    disk = lsblk("/dev/mapper/secret--host-root", (960197124096, False, "sda"))
    outputs = {**printed, **disk, "uname -r": "5.14.0-284.11.1.el9_2.x86_64\n", "dmidecode -t memory": modules}
    machine = read(tmp_path, outputs, XEON_FILES)
    check(machine)
    assert values(machine) == {
        "cpu_model": "xeon gold 6252",
        "cpu_vendor": "Intel",
        "isa": "x86",
        "arch": "x86_64",
        "base_mhz": 2100,
        "l1i_kb": 32,
        "l1d_kb": 32,
        "l2_kb_per_core": 1024,
        "l3_mb_per_chip": 35.75,
        "l3_slice_mb": 35.75,
        "l3_cores_per_slice": 24,
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
    assert machine.notes == ()
    assert {"compiler_vendor", "base_ptr", "dimm_width"} <= set(machine.not_read)
    assert "choice" in machine.not_read["compiler_vendor"]


def test_read_hardware_contains_no_identifier_of_the_machine(tmp_path):
    disk = lsblk("/dev/mapper/secret--host-root", (960197124096, False, "sda"))
    outputs = {"lscpu -J": as_json(XEON), **disk, "dmidecode -t memory": tables(module())}
    commands = []

    def run(command):
        commands.append(list(command))
        return outputs.get(" ".join(command), "secret-host 192.0.2.7")

    plant(tmp_path, XEON_FILES)
    text = repr(read_hardware(run, tmp_path))
    assert "960" in text
    assert not [secret for secret in SECRETS if secret in text]
    for command in commands:
        assert command[0] in {"lscpu", "uname", "dmidecode", "lsblk"}
        assert command[0] != "uname" or command[1] == "-r"


def test_memory_at_its_rated_rate_has_no_running_rate(tmp_path):
    machine = read(tmp_path, {"dmidecode -t memory": tables(module())})
    assert values(machine)["mem_rated_mts"] == 2933
    assert "mem_running_mts" not in values(machine)


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


def test_epyc_without_smt(tmp_path):
    ddr5 = {"Size": "64 GB", "Total Width": "80 bits", "Type": "DDR5", "Speed": "4800 MT/s"}
    devices = [module(**ddr5, **{"Configured Memory Speed": "4800 MT/s"})] * 24
    files = {
        "/etc/os-release": OS["sles"],
        "/proc/mounts": "tmpfs / tmpfs rw 0 0\n",
    }
    outputs = {
        "lscpu -J": as_json(EPYC),
        "uname -r": "5.14.21-150500.53-default",
        "dmidecode -t memory": tables(*devices),
    }
    machine = read(tmp_path, outputs, files)
    check(machine)
    columns = values(machine)
    assert {name: columns[name] for name in ("cpu_model", "chips", "cores_enabled_total", "threads_per_core")} == {
        "cpu_model": "epyc 9654",
        "chips": 2,
        "cores_enabled_total": 192,
        "threads_per_core": 1,
    }
    assert (columns["l3_mb_per_chip"], columns["l3_slice_mb"], columns["l3_cores_per_slice"]) == (384, 32, 8)
    assert (columns["mem_total_gb"], columns["ddr_gen"], columns["mem_rated_mts"]) == (1536, 5, 4800)
    assert (columns["os_name"], columns["os_version"], columns["storage_class"]) == ("SLES", "15.5", "ram")


def test_arm_server_has_its_model_from_firmware(tmp_path):
    machine = read(tmp_path, {"lscpu -J": as_json(ALTRA)}, {"/etc/os-release": OS["ubuntu"]})
    check(machine)
    columns = values(machine)
    assert (columns["cpu_model"], columns["cpu_vendor"], columns["isa"]) == ("altra q80-30", "Ampere", "arm")
    assert (columns["chips"], columns["cores_enabled_total"], columns["threads_per_core"]) == (2, 160, 1)
    assert (columns["l1d_kb"], columns["l2_kb_per_core"]) == (64, 1024)
    # the clock after the firmware name is not the base clock
    assert "base_mhz" in machine.not_read


def test_virtual_arm_machine_with_a_core_design_has_no_model(tmp_path):
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
    assert "cpu_model" in machine.not_read
    assert "cpu_vendor" in machine.not_read
    assert "hw_vendor" in machine.not_read
    assert "Amazon EC2" in machine.notes[0]
    firmware["/sys/class/dmi/id/product_name"] = "m7g.metal\n"
    assert values(read(tmp_path, {"lscpu -J": as_json(fields)}, firmware))["hw_vendor"] == "Amazon EC2"


def guest(name, **changes):
    fields = {
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
        **changes,
    }
    return {"lscpu -J": as_json([*fields.items()])}


def test_virtual_machine_without_firmware_tables(tmp_path):
    files = {
        "/proc/meminfo": "MemTotal:       16393216 kB\n",
        "/proc/mounts": "/dev/vda1 / ext4 rw 0 0\n",
        "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    }
    outputs = {
        **guest("Intel Xeon Processor (Skylake, IBRS)"),
        **lsblk("/dev/vda1", (107374182400, True, "vda")),
        "dmidecode -t memory": tables(module(Type="RAM")),
    }
    machine = read(tmp_path, outputs, files)
    check(machine)
    columns = values(machine)
    assert "cpu_model" in machine.not_read
    assert columns["mem_total_gb"] == 32, "the table of the hypervisor has the memory of the guest"
    assert (columns["chips"], columns["cores_enabled_total"], columns["l2_kb_per_core"]) == (1, 4, 4096)
    assert (columns["file_system"], columns["storage_gb"]) == ("ext4", 107)
    assert not {"storage_class", "hw_vendor", "dimm_count"} & set(columns)
    assert "virtual machine (hypervisor: KVM)" in machine.notes[0]
    del outputs["dmidecode -t memory"]
    machine = read(tmp_path, outputs, files)
    assert values(machine)["mem_total_gb"] == 16
    assert any("15.63 GiB" in note for note in machine.notes)


def test_caches_of_a_hypervisor_are_ignored_for_a_known_model(tmp_path):
    columns = values(read(tmp_path, guest("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz")))
    assert columns["cpu_model"] == "xeon platinum 8375c"
    assert columns["base_mhz"] == 2900
    assert not {"l2_kb_per_core", "l3_mb_per_chip"} & set(columns)


def test_sockets_with_one_virtual_cpu_each_are_no_chips(tmp_path):
    machine = read(tmp_path, guest("Common KVM processor", **{"Core(s) per socket": "1", "Socket(s)": "4"}))
    assert values(machine)["cores_enabled_total"] == 4
    assert "chips" in machine.not_read
    assert any("socket of its own" in note for note in machine.notes)
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


def test_laptop_with_two_kinds_of_cores(tmp_path):
    chips = module(
        **{"Size": "8 GB", "Form Factor": "Row Of Chips", "Type": "LPDDR5", "Type Detail": "Synchronous", "Rank": "1"}
    )
    files = {
        "/etc/os-release": OS["arch"],
        "/proc/mounts": "/dev/nvme0n1p2 / btrfs rw 0 0\n",
        "/sys/class/dmi/id/sys_vendor": "LENOVO\n",
    }
    outputs = {
        "lscpu -J": as_json(LAPTOP),
        "dmidecode -t memory": tables(chips, chips, ecc="None"),
        "uname -r": "6.6.1",
        **lsblk("/dev/nvme0n1p2", (512110190592, False, "nvme0n1")),
    }
    machine = read(tmp_path, outputs, files)
    check(machine)
    columns = values(machine)
    assert (columns["cpu_model"], columns["cores_enabled_total"], columns["chips"]) == ("core i7-1260p", 12, 1)
    assert columns["l3_mb_per_chip"] == 18
    assert (columns["mem_total_gb"], columns["hw_vendor"]) == (16, "Lenovo")
    assert (columns["storage_class"], columns["storage_gb"]) == ("nvme", 512)
    assert not {"threads_per_core", "l1d_kb", "l2_kb_per_core", "dimm_count", "os_name"} & set(columns)
    assert any("cores differ" in note for note in machine.notes)


def test_container(tmp_path):
    machine = read(tmp_path, {"lscpu -J": as_json(XEON)}, {"/proc/mounts": "overlay / overlay rw 0 0\n"})
    check(machine)
    assert (values(machine)["cpu_model"], values(machine)["arch"]) == ("xeon gold 6252", "x86_64")
    assert "file_system" in machine.not_read
    assert "dmidecode" in machine.not_read["dimm_count"]
    assert "container" in " ".join(machine.notes)


def test_machine_without_outputs_has_only_reasons(tmp_path):
    machine = read(tmp_path, {})
    check(machine)
    assert machine.readings == ()
    assert {"chips", "os_name", "isa", "hw_vendor", "storage_gb", "mem_total_gb"} <= set(machine.not_read)
