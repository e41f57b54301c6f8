"""Values from outputs that differ by version or are garbled."""

import dataclasses
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_outputs import (
    ALTRA,
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

from perfcast.domains.servers.hardware_info import estimate_installed_gib, find_cpu_model, read_hardware
from perfcast.microbench import machine as lscpu
from perfcast.microbench import machine as system_access


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
def test_module_types(tmp_path, changes, letter, ecc):
    columns = values(read(tmp_path, {"dmidecode -t memory": tables(module(**changes), ecc="Unknown")}))
    assert (columns.get("dimm_type"), columns.get("ecc")) == (letter, ecc)


def test_mixed_modules_have_the_size_of_the_largest_group_and_the_slowest_rate(tmp_path):
    large = module(Size="64 GB", Rank="4", Speed="3200 MT/s")
    hbm = module(**{"Size": "16 GB", "Type": "HBM2", "Form Factor": "Unknown", "Speed": "3200 MT/s"})
    flash = module(**{"Size": "128 GB", "Type": "Logical non-volatile device"})
    old = module(Size="16384 MB", **{"Configured Memory Speed": "Unknown", "Configured Clock Speed": "2400 MHz"})
    columns = values(read(tmp_path, {"dmidecode -t memory": tables(large, large, old, hbm, flash)}))
    assert (columns["mem_total_gb"], columns["hbm_gb"]) == (64 + 64 + 16 + 16, 16)
    assert (columns["dimm_count"], columns["dimm_groups"], columns["dimm_gb"], columns["dimm_ranks"]) == (3, 2, 64, 4)
    assert (columns["mem_rated_mts"], columns["mem_running_mts"]) == (2933, 2400)


def test_cache_sizes_of_older_and_newer_lscpu(tmp_path):
    fields = dict(XEON) | {"L1d cache": "32K", "L2 cache": "1024K", "L3 cache": "36608K"}
    machine = read(tmp_path, {"lscpu -J": as_json([*fields.items()])})
    columns = values(machine)
    assert (columns["l1d_kb"], columns["l2_kb_per_core"]) == (32, 1024)
    assert "l3_mb_per_chip" in machine.not_read
    fields |= {"L1d cache": "1.5 MiB", "L3 cache": "71.5 MiB"}
    columns = values(read(tmp_path, {"lscpu -J": as_json([*fields.items()])}))
    assert (columns["l1d_kb"], columns["l3_mb_per_chip"]) == (32, 35.75)
    assert "l3_slice_mb" not in columns


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
def test_vendor_from_firmware(tmp_path, text, vendor):
    assert values(read(tmp_path, {}, {"/sys/class/dmi/id/sys_vendor": text})).get("hw_vendor") == vendor


@pytest.mark.parametrize(("rotates", "expected"), [((True, True), "hdd"), ((True, False), None)])
def test_storage_class_of_an_array_is_that_of_all_disks(tmp_path, rotates, expected):
    disks = [(1024000000000, turns, name) for turns, name in zip(rotates, ("sda", "sdb"), strict=True)]
    mounts = {"/proc/mounts": "/dev/md0 / ext4 rw 0 0\n"}
    columns = values(read(tmp_path, lsblk("/dev/md0", *disks, *disks), mounts))
    assert columns.get("storage_class") == expected
    assert columns["storage_gb"] == 2048


def test_values_out_of_bounds_are_missing(tmp_path):
    fields = dict(XEON) | {"Socket(s)": "900"}
    machine = read(tmp_path, {"lscpu -J": as_json([*fields.items()])})
    check(machine)
    assert "chips" in machine.not_read


@pytest.mark.parametrize(
    ("name", "model"),
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
def test_find_cpu_model(name, model):
    assert find_cpu_model(name) == model


@pytest.mark.parametrize(
    ("managed", "installed"),
    [(376.5, 384), (1007.3, 1024), (15.3, 16), (62.5, 64), (23.54, 24), (754, 768), (283, None), (0, None)],
)
def test_estimate_installed_gib(managed, installed):
    assert estimate_installed_gib(managed) == installed


def test_count_cpus():
    assert lscpu.count_cpus("0-63,128") == 65
    assert lscpu.count_cpus("") == lscpu.count_cpus("x-3") == lscpu.count_cpus("5-2") == 0


def test_read_hardware_is_deterministic(tmp_path):
    outputs = {"lscpu -J": as_json(XEON), "dmidecode -t memory": tables(module(), module(Size="16 GB"))}
    assert read(tmp_path, outputs, XEON_FILES) == read(tmp_path, outputs, XEON_FILES)
    assert dataclasses.is_dataclass(read(tmp_path, outputs).readings[0])


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


@settings(max_examples=150, deadline=None)
@given(GARBLED, GARBLED, GARBLED, st.text(max_size=60))
def test_garbled_outputs_never_raise_and_stay_within_bounds(outputs, plain, modules, other):
    answers = {"lscpu -J": outputs, "lscpu": plain, "dmidecode -t memory": modules}
    with TemporaryDirectory() as folder:
        check(read_hardware(lambda command: answers.get(" ".join(command), other), Path(folder)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60), min_size=5, max_size=5))
def test_garbled_files_never_raise(texts):
    paths = [
        "/etc/os-release",
        "/proc/meminfo",
        "/proc/mounts",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
    ]
    with TemporaryDirectory() as folder:
        plant(Path(folder), dict(zip(paths, texts, strict=True)))
        check(read_hardware(lambda command: as_text(XEON), Path(folder)))


def test_run_command_uses_english_and_limits_output_and_time(monkeypatch):
    monkeypatch.setattr(system_access, "MAX_CHARACTERS", 1000)
    assert system_access.run_command(["sh", "-c", "echo $LC_ALL"]) == "C\n"
    assert len(system_access.run_command(["sh", "-c", "yes | head -c 100000"])) == 1000
    with pytest.raises(subprocess.CalledProcessError):
        system_access.run_command(["sh", "-c", "exit 3"])
    with pytest.raises(FileNotFoundError):
        system_access.run_command(["no-such-command-of-any-machine"])
    monkeypatch.setattr(system_access, "_SECONDS", 0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        system_access.run_command(["sleep", "30"])


def test_read_hardware_reads_this_machine():
    check(read_hardware())
