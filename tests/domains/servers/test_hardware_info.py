"""Machines read from outputs of their commands and files of their kernels, also of other versions and garbled."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import machine_outputs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_outputs import (
    ALTRA,
    OS,
    XEON,
    XEON_FILES,
    as_json,
    as_text,
    check,
    module,
    read,
    tables,
    values,
)

from perfcast.domains.servers.hardware_info import estimate_installed_gib, read_hardware
from perfcast.microbench import machine as lscpu

SERVER = {
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
}


@pytest.mark.parametrize("spelling", ["json", "text"])
def test_read_hardware_reads_a_server_with_two_sockets(tmp_path, spelling):
    printed = {"lscpu -J": as_json(XEON)}
    if spelling == "text":
        printed = {
            "lscpu -J": subprocess.CalledProcessError(1, "lscpu"),
            "lscpu": as_text(XEON),
        }
    modules = tables(
        *[module(**{"Configured Memory Speed": "2666 MT/s"})] * 12,
        *[machine_outputs.EMPTY] * 12,
    )
    outputs = {
        **printed,
        "uname -r": "5.14.0-284.11.1.el9_2.x86_64\n",
        "dmidecode -t memory": modules,
    }
    machine = read(tmp_path, outputs, XEON_FILES)
    check(machine)
    assert values(machine) == SERVER and machine.notes == ()
    assert "choice" in machine.not_read["compiler_vendor"]
    assert {"compiler_vendor", "base_ptr", "dimm_width"} <= set(machine.not_read)
    machine = read(tmp_path, {"dmidecode -t memory": tables(module())})  # at the rated rate
    assert values(machine)["mem_rated_mts"] == 2933 and "mem_running_mts" not in values(machine)


def test_read_hardware_contains_no_identifier_of_the_machine(tmp_path):
    outputs = {"lscpu -J": as_json(XEON), "dmidecode -t memory": tables(module())}
    commands = []

    def run(command):
        commands.append(list(command))
        return outputs.get(" ".join(command), "secret-host 192.0.2.7")

    machine_outputs.plant(tmp_path, XEON_FILES)
    text = repr(read_hardware(run, tmp_path))
    assert "xeon gold 6252" in text
    assert not [secret for secret in machine_outputs.SECRETS if secret in text]
    for command in commands:
        assert command[0] in {"lscpu", "uname", "dmidecode"}
        assert command[0] != "uname" or command[1] == "-r"


def fields(text, **changes):
    """Return the fields of lscpu, written as `name: value; name: value`."""
    return [*{**dict(each.split(": ") for each in text.split("; ")), **changes}.items()]


def test_arm_server_has_its_model_from_firmware(tmp_path):
    machine = read(tmp_path, {"lscpu -J": as_json(ALTRA)}, {"/etc/os-release": OS["ubuntu"]})
    check(machine)
    expected = {
        "cpu_model": "altra q80-30",
        "cpu_vendor": "Ampere",
        "isa": "arm",
        "chips": 2,
        "l1d_kb": 64,
    }
    expected |= {
        "cores_enabled_total": 160,
        "threads_per_core": 1,
        "l2_kb_per_core": 1024,
    }
    assert expected.items() <= values(machine).items()
    # the clock after the firmware name is not the base clock
    assert "base_mhz" in machine.not_read


GUEST = (
    "Architecture: x86_64; CPU(s): 4; On-line CPU(s) list: 0-3; Vendor ID: GenuineIntel; Thread(s) per core: 1; "
    "Core(s) per socket: 4; Socket(s): 1; Hypervisor vendor: KVM; Virtualization type: full; CPU max MHz: 3500.0000; "
    "L1d cache: 128 KiB (4 instances); L2 cache: 16 MiB (4 instances); L3 cache: 16 MiB (1 instance); Flags: avx avx2"
)


def guest(name, **changes):
    return {"lscpu -J": as_json(fields(GUEST, **{"Model name": name, **changes}))}


def test_virtual_machine_without_firmware_tables(tmp_path):
    files = {
        "/proc/meminfo": "MemTotal:       16393216 kB\n",
        "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    }
    outputs = guest("Intel Xeon Processor (Skylake, IBRS)")
    outputs["dmidecode -t memory"] = tables(module(Type="RAM"))
    machine = read(tmp_path, outputs, files)
    check(machine)
    columns = values(machine)
    assert "cpu_model" in machine.not_read
    assert columns["mem_total_gb"] == 32, "the table of the hypervisor has the memory of the guest"
    assert (
        columns["chips"],
        columns["cores_enabled_total"],
        columns["l2_kb_per_core"],
    ) == (1, 4, 4096)
    assert not {"hw_vendor", "dimm_count"} & set(columns)
    assert "virtual machine (hypervisor: KVM)" in machine.notes[0]
    del outputs["dmidecode -t memory"]
    machine = read(tmp_path, outputs, files)
    assert values(machine)["mem_total_gb"] == 16
    assert any("15.63 GiB" in note for note in machine.notes)


def test_caches_of_a_hypervisor_are_ignored_and_sockets_with_one_virtual_cpu_each_are_no_chips(
    tmp_path,
):
    columns = values(read(tmp_path, guest("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz")))
    assert (columns["cpu_model"], columns["base_mhz"]) == ("xeon platinum 8375c", 2900)
    assert not {"l2_kb_per_core", "l3_mb_per_chip"} & set(columns)
    machine = read(
        tmp_path,
        guest("Common KVM processor", **{"Core(s) per socket": "1", "Socket(s)": "4"}),
    )
    assert values(machine)["cores_enabled_total"] == 4
    assert {"chips", "l3_mb_per_chip"} <= set(machine.not_read)
    assert any("socket of its own" in note for note in machine.notes)


LAPTOP = fields(
    "Architecture: x86_64; CPU(s): 16; On-line CPU(s) list: 0-15; Vendor ID: GenuineIntel; Model name: 12th Gen "
    "Intel(R) Core(TM) i7-1260P; Thread(s) per core: 2; Core(s) per socket: 12; Socket(s): 1; CPU max MHz: 4700.0000; "
    "L1d cache: 448 KiB (12 instances); L2 cache: 9 MiB (6 instances); L3 cache: 18 MiB (1 instance); "
    "Flags: avx avx2 avx_vnni"
)


def test_laptop_with_two_kinds_of_cores(tmp_path):
    soldered = {
        "Size": "8 GB",
        "Form Factor": "Row Of Chips",
        "Type": "LPDDR5",
        "Type Detail": "Synchronous",
    }
    chips = module(**soldered, Rank="1")
    files = {"/etc/os-release": OS["arch"], "/sys/class/dmi/id/sys_vendor": "LENOVO\n"}
    printed = {"lscpu -J": as_json(LAPTOP), "uname -r": "6.6.1"}
    machine = read(
        tmp_path,
        {**printed, "dmidecode -t memory": tables(chips, chips, ecc="None")},
        files,
    )
    check(machine)
    columns = values(machine)
    expected = {
        "cpu_model": "core i7-1260p",
        "cores_enabled_total": 12,
        "chips": 1,
        "l3_mb_per_chip": 18,
    }
    expected |= {"mem_total_gb": 16, "hw_vendor": "Lenovo"}
    assert expected.items() <= columns.items()
    assert not {
        "threads_per_core",
        "l1d_kb",
        "l2_kb_per_core",
        "dimm_count",
        "os_name",
    } & set(columns)
    assert any("cores differ" in note for note in machine.notes)


def test_container(tmp_path):
    machine = read(
        tmp_path,
        {"lscpu -J": as_json(XEON)},
        {"/proc/mounts": "overlay / overlay rw 0 0\n"},
    )
    check(machine)
    assert {"cpu_model": "xeon gold 6252", "arch": "x86_64"}.items() <= values(machine).items()
    assert "file_system" in machine.not_read and "dmidecode" in machine.not_read["dimm_count"]
    assert "container" in " ".join(machine.notes)
    assert read(tmp_path / "empty", {}).readings == ()


UNBUFFERED = "Synchronous Unbuffered (Unregistered)"


def test_module_types(tmp_path):
    for changes, letter, ecc in (
        ({"Type Detail": "Synchronous LRDIMM"}, "L", 1),
        ({"Type Detail": UNBUFFERED}, "E", 1),
        ({"Type Detail": UNBUFFERED, "Total Width": "64 bits"}, "U", 0),
        (
            {
                "Form Factor": "SODIMM",
                "Type Detail": "Synchronous",
                "Total Width": "64 bits",
            },
            "S",
            0,
        ),
        ({"Type Detail": "Synchronous", "Total Width": "Unknown"}, None, None),
    ):
        columns = values(
            read(
                tmp_path,
                {"dmidecode -t memory": tables(module(**changes), ecc="Unknown")},
            )
        )
        assert (columns.get("dimm_type"), columns.get("ecc")) == (letter, ecc)


def test_mixed_modules_have_the_size_of_the_largest_group_and_the_slowest_rate(
    tmp_path,
):
    large = module(Size="64 GB", Rank="4", Speed="3200 MT/s")
    stack = {
        "Size": "16 GB",
        "Type": "HBM2",
        "Form Factor": "Unknown",
        "Speed": "3200 MT/s",
    }
    hbm = module(**stack)
    flash = module(**{"Size": "128 GB", "Type": "Logical non-volatile device"})
    old = module(
        Size="16384 MB",
        **{"Configured Memory Speed": "Unknown", "Configured Clock Speed": "2400 MHz"},
    )
    columns = values(read(tmp_path, {"dmidecode -t memory": tables(large, large, old, hbm, flash)}))
    expected = {
        "mem_total_gb": 64 + 64 + 16 + 16,
        "hbm_gb": 16,
        "dimm_count": 3,
        "dimm_groups": 2,
        "dimm_gb": 64,
    }
    expected |= {"dimm_ranks": 4, "mem_rated_mts": 2933, "mem_running_mts": 2400}
    assert expected.items() <= columns.items()


def test_cache_sizes_models_and_installed_memory(tmp_path):
    fields = dict(XEON) | {
        "L1d cache": "32K",
        "L2 cache": "1024K",
        "L3 cache": "36608K",
    }
    machine = read(tmp_path, {"lscpu -J": as_json([*fields.items()])})
    assert {"l1d_kb": 32, "l2_kb_per_core": 1024}.items() <= values(machine).items()
    assert "l3_mb_per_chip" in machine.not_read
    absurd = read(tmp_path, {"lscpu -J": as_json([*(fields | {"Socket(s)": "900"}).items()])})
    check(absurd)
    assert "chips" in absurd.not_read
    fields |= {"L1d cache": "1.5 MiB", "L3 cache": "71.5 MiB"}
    columns = values(read(tmp_path, {"lscpu -J": as_json([*fields.items()])}))
    assert (
        columns["l1d_kb"],
        columns["l3_mb_per_chip"],
        "l3_slice_mb" in columns,
    ) == (32, 35.75, False)
    assert {managed: estimate_installed_gib(managed) for managed in INSTALLED} == INSTALLED
    assert [lscpu.count_cpus(text) for text in ("0-63,128", "", "x-3", "5-2")] == [
        65,
        0,
        0,
        0,
    ]


def test_vendor_from_firmware(tmp_path):
    vendors = {
        "GIGABYTE": "Gigabyte",
        "Supermicro": "Supermicro",
        "To Be Filled By O.E.M.": None,
    }
    for text, vendor in vendors.items():
        machine = read(tmp_path, {}, {"/sys/class/dmi/id/sys_vendor": text})
        assert values(machine).get("hw_vendor") == vendor, text


INSTALLED = {
    376.5: 384,
    1007.3: 1024,
    15.3: 16,
    62.5: 64,
    23.54: 24,
    754: 768,
    283: None,
    0: None,
}


# pieces of real lines reach more code than random letters
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


FILES = [
    "/etc/os-release",
    "/proc/meminfo",
    "/proc/mounts",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
]
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)


@given(
    GARBLED,
    GARBLED,
    GARBLED,
    st.text(max_size=60),
    st.fixed_dictionaries(dict.fromkeys(FILES, TEXT)),
)
def test_garbled_outputs_and_files_never_raise_and_stay_within_bounds(outputs, plain, modules, other, files):
    answers = {"lscpu -J": outputs, "lscpu": plain, "dmidecode -t memory": modules}
    with TemporaryDirectory() as folder:
        machine_outputs.plant(Path(folder), files)
        check(read_hardware(lambda command: answers.get(" ".join(command), other), Path(folder)))


def test_run_command_uses_english_and_limits_output_and_time(monkeypatch):
    check(read_hardware())  # of this machine
    monkeypatch.setattr(lscpu, "MAX_CHARACTERS", 1000)
    assert lscpu.run_command(["sh", "-c", "echo $LC_ALL"]) == "C\n"
    assert len(lscpu.run_command(["sh", "-c", "yes | head -c 100000"])) == 1000
    with pytest.raises(subprocess.CalledProcessError):
        lscpu.run_command(["sh", "-c", "exit 3"])
    with pytest.raises(FileNotFoundError):
        lscpu.run_command(["no-such-command-of-any-machine"])
    monkeypatch.setattr(lscpu, "_SECONDS", 0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        lscpu.run_command(["sleep", "30"])
