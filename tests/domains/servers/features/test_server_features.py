"""Derived features of servers and labels of errors against values worked out by hand, and rules for any input."""

import math

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.features import (
    jvm,
    memory,
    node_power,
    processor,
    setup_labels,
    system,
    workload,
)
from perfcast.domains.servers.features.server_physics import POWER_CLOCK_MHZ
from perfcast.features.feature_math import version_number
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

MODULES = {
    "processor": processor,
    "memory": memory,
    "system": system,
    "workload": workload,
}
DATES = ("hw_avail", "sw_avail", "test_month", "launch_quarter")
TEXTS = ("kernel_series", "compiler_vendor", "compiler_major_minor")
REQUIRED = sorted({name for module in MODULES.values() for name in module.REQUIRES})
NUMBERS = [name for name in REQUIRED if name not in DATES + TEXTS]

# Two processors of 32 cores at 2.0 (3.4) GHz and 205 W, 8 channels each, all filled once with DDR4-3200.
MACHINE = {
    "base_mhz": 2000.0,
    "max_turbo_mhz": 3400.0,
    "tdp_w": 205.0,
    "cores_per_chip_of_cpu_model": 32.0,
    "cores_enabled_total": 64.0,
    "chips": 2.0,
    "threads_per_core": 2.0,
    "l2_kb_per_core": 1280.0,
    "l3_mb_per_chip": 48.0,
    "simd_bits": 512.0,
    "fma_units": 2.0,
    "mem_channels_per_chip": 8.0,
    "mem_max_mts_1dpc": 3200.0,
    "mem_total_gb": 1024.0,
    "hbm_gb": 0.0,
    "dimm_count": 16.0,
    "dimm_ranks": 2.0,
    "mem_eff_mts": 3200.0,
    "hw_avail": pd.Timestamp("2021-04-01"),
    "sw_avail": pd.Timestamp("2020-12-01"),
    "test_month": pd.Timestamp("2022-01-01"),
    "launch_quarter": pd.Timestamp("2021-04-01"),
    "kernel_series": "5.3",
    "compiler_vendor": "Intel oneAPI",
    "compiler_major_minor": "2021.1",
}


def make(rows):
    frame = pd.DataFrame([{**MACHINE, **row} for row in rows])
    columns = [
        Column(
            name,
            Kind.DATE if name in DATES else Kind.CATEGORICAL if name in TEXTS else Kind.NUMERICAL,
            role,
            "any",
        )
        for name in REQUIRED
        for role in [Role.PROVENANCE if name in DATES else Role.FEATURE]
    ]
    return build_table("machines", frame, columns)


def derive(*rows, modules=tuple(MODULES)):
    table = make(rows or [{}])
    for name in modules:
        table = MODULES[name].derive(table)
    return table


KNOWN = {
    "cores_enabled_share": 1,
    "hw_threads_total": 128,
    "l2_mb_total": 80,
    "l3_mb_total": 96,
    "l3_mb_per_core": 1.5,
    "tdp_w_total": 410,
    "tdp_w_per_core": 6.40625,
    "turbo_ratio": 1.7,
    "flops_per_cycle": 32,
    "clock_base_total_ghz": 128,
    "clock_turbo_total_ghz": 217.6,
    "peak_gflops_base": 4096,
    "mem_channels_total": 16,
    "mem_channels_populated": 16,
    "mem_channels_filled": 1,
    "dimms_per_channel": 1,
    "ranks_per_channel": 2,
    "mem_speed_share": 1,
    "mem_gbps_total": 409.6,
    "mem_gbps_per_chip": 204.8,
    "mem_gbps_per_core": 6.4,
    "mem_gbps_per_core_ghz": 3.2,
    "mem_gb_per_core": 16,
    "has_hbm": 0,
    "log_cores_enabled_total": math.log(64),
    "log_mem_gbps_per_core": math.log(6.4),
    "launch_year": 2021.25,
    "hw_avail_year": 2021.25,
    "sw_avail_year": 2020 + 11 / 12,
    "hw_age_years": 0.75,
    "sw_age_years": 13 / 12,
    "kernel_version": 5.003,
    "compiler_version": 21.001,
    "compiler_release_year": 2020 + 11 / 12,
    "compiler_age_years": 13 / 12,
}


def test_known_machine_and_variations():
    table = derive()
    assert table.frame.iloc[0][list(KNOWN)].to_dict() == pytest.approx(KNOWN)
    scaling_columns = [
        "power_clock_mhz",
        "flops_per_cycle",
        "mem_gbps_total",
        "l3_mb_total",
    ]
    assert table.select(tag=Tag.SCALING) == scaling_columns, "terms of the scaling law"
    for change, values in (
        (
            {"dimm_count": 32.0},
            {
                "mem_channels_populated": 16,
                "dimms_per_channel": 2,
                "mem_gbps_total": 409.6,
            },
        ),
        ({"dimm_count": 4.0}, {"mem_gbps_total": 102.4, "mem_channels_filled": 0.25}),
        ({"cores_enabled_total": 16.0}, {"cores_enabled_share": 0.25}),
        ({"hbm_gb": 128.0}, {"has_hbm": 1, "mem_gbps_total": 409.6}),
        (
            {"compiler_vendor": "AOCC", "compiler_major_minor": "4.0"},
            {"compiler_release_year": 2022 + 10 / 12},
        ),
        ({"test_month": pd.Timestamp("2021-01-01")}, {"hw_age_years": -0.25}),
    ):
        assert derive(change).frame.iloc[0][list(values)].to_dict() == pytest.approx(values), change
    for change, names in (
        (
            {"hbm_gb": 128.0, "dimm_count": 0.0},
            [
                "mem_gbps_total",
                "log_mem_gbps_total",
                "mem_gbps_per_core_ghz",
            ],
        ),
        (
            {"compiler_vendor": "Nobody", "compiler_major_minor": "7.7"},
            ["compiler_release_year", "compiler_age_years"],
        ),
        (
            {"tdp_w": 0.0},
            ["power_clock_mhz", "clock_power_total_ghz", "log_tdp_w_per_core"],
        ),
        ({"kernel_series": "unknown"}, ["kernel_version"]),
        ({"cores_enabled_total": 0.0}, ["log_cores_enabled_total", "mem_gb_per_core"]),
    ):
        assert derive(change).frame[names].isna().all(axis=None), change


def test_power_clock_between_its_limits():
    cool, equal, hot = (32 * (mhz / POWER_CLOCK_MHZ) ** 3 for mhz in (1000, 3400, 30000))
    clocks = derive({"tdp_w": cool}, {"tdp_w": equal}, {"tdp_w": hot}).frame["power_clock_mhz"]
    assert clocks[0] == pytest.approx(1000, rel=1e-3)
    assert clocks[1] == pytest.approx(3400 * 2 ** (-1 / 8))
    assert clocks[2] == pytest.approx(3400, rel=1e-3)


def test_kernels_and_compilers_are_ordered_as_released():
    series = [
        "2.6",
        "3.10",
        "4.4",
        "4.12",
        "4.15-45-generic",
        "5.3",
        "5.14.21",
        "6.4",
    ]
    assert (np.diff(version_number(np.array(series, dtype=object))) > 0).all()
    assert np.isnan(version_number(np.array(["", None, "1234567.8", "5.12345", "x"], dtype=object))).all()
    versions = [
        "17.0",
        "18.0",
        "19.0",
        "19.1",
        "2021.1",
        "2021.4",
        "2022.1",
        "2023.0",
        "2023.2",
        "2024.1",
    ]
    frame = derive(*({"compiler_major_minor": version} for version in versions)).frame
    assert frame["compiler_version"].is_monotonic_increasing and frame["compiler_release_year"].is_monotonic_increasing


def test_missing_in_gives_missing_out_in_any_order_of_modules():
    whole = derive().frame.iloc[0]
    rows = derive(*({name: None} for name in REQUIRED)).frame
    for name, (_, row) in zip(REQUIRED, rows.iterrows(), strict=True):
        others = row.drop(name)
        assert others.isna().any(), name
        pd.testing.assert_series_equal(others.dropna(), whole[others.dropna().index], check_names=False)
    assert derive(dict.fromkeys(REQUIRED)).frame.isna().all(axis=None)
    usual = derive().frame
    turned = derive(modules=list(MODULES)[::-1]).frame
    pd.testing.assert_frame_equal(usual[sorted(usual)], turned[sorted(turned)])


JAVA_DATES = ("test_month", "hw_avail", "launch_quarter")
WORDS = ("family", "compiler_vendor", "compiler_major_minor")
# Two processors of 20 cores at 2.0 (3.0) GHz and 150 W, 12 DIMMs of 32 GB, one supply of 800 W, Java 17.0.2.
JAVA_MACHINE = {
    "chips": 2.0,
    "cores_enabled_total": 40.0,
    "cores_per_chip_of_cpu_model": 20.0,
    "threads_per_core": 2.0,
    "nodes": 1.0,
    "base_mhz": 2000.0,
    "max_turbo_mhz": 3000.0,
    "tdp_w": 150.0,
    "dimm_count": 12.0,
    "mem_total_gb": 384.0,
    "psu_count": 1.0,
    "psu_w": 800.0,
    "jvm_release": 17.0,
    "jvm_update": 2.0,
    "test_month": "2022-07-01",
    "hw_avail": "2022-01-01",
    "launch_quarter": "2021-04-01",
    "family": "Genoa",
    "ddr_gen": 5.0,
    "mem_eff_mts": 4800.0,
    "dimms_per_channel": 1.0,
    "compiler_vendor": "AOCC",
    "compiler_major_minor": "4.0",
}


def derived(module, **changes):
    names = module.REQUIRES
    kinds = {
        **dict.fromkeys(JAVA_DATES, Kind.DATE),
        **dict.fromkeys(WORDS, Kind.CATEGORICAL),
    }
    columns = [Column(name, kinds.get(name, Kind.NUMERICAL), Role.FEATURE, "all") for name in names]
    frame = pd.DataFrame([{**JAVA_MACHINE, **changes}])[list(names)]
    return module.derive(build_table("one", frame, columns))


def test_virtual_machine_and_power_of_the_parts():
    row = derived(jvm).frame.iloc[0]
    names = ["jvm_version", "jvm_release_year", "jvm_age_years", "mem_gb_per_thread"]
    assert row[names].tolist() == pytest.approx([17.002, 2021.67, 0.83, 4.8])
    assert derived(jvm, nodes=4.0).frame["cores_per_node"][0] == 10
    for release, year in (
        (8.0, 2014.17),
        (10.0, 2018.17),
        (21.0, 2023.67),
        (4.0, math.nan),
        (None, math.nan),
    ):
        derived_year = derived(jvm, jvm_release=release).frame["jvm_release_year"][0]
        assert derived_year == pytest.approx(year, nan_ok=True)
    table = derived(node_power)
    row = table.frame.iloc[0]
    names = [
        "parts_w",
        "base_ghz_per_w",
        "parts_w_per_core",
        "psu_load",
        "shares_enclosure",
        "design_age_years",
    ]
    assert row[names].tolist() == pytest.approx(
        [
            2 * 150 + 12 * 4,
            80 / 348,
            8.7,
            348 / 800,
            0,
            0.75,
        ]
    )
    assert {"parts_w", "power_ghz_per_w"} == set(table.select(tag=Tag.SCALING))
    row = derived(node_power, tdp_w=None, psu_w=None).frame.iloc[0]
    assert row[["parts_w", "base_ghz_per_w", "psu_w_total", "psu_load", "log_parts_w"]].isna().all()


def test_labels_of_the_setup():
    usual = {
        "generation": "Zen 4",
        "memory_setup": "DDR5-4800, 1 a channel",
        "compiler": "AOCC 4",
    }
    words = {
        0.5: "empty channels",
        2.0: "2 a channel",
    }
    cases = [
        ({}, {}),
        (
            {"compiler_vendor": "A", "compiler_major_minor": "19.1"},
            {"compiler": "A 19"},
        ),
    ]
    cases += [({"dimms_per_channel": n}, {"memory_setup": f"DDR5-4800, {word}"}) for n, word in words.items()]
    cases += [({"family": family}, {"generation": None}) for family in (None, "no such family")]
    cases += [({name: None}, {"memory_setup": None}) for name in ("ddr_gen", "mem_eff_mts", "dimms_per_channel")]
    cases += [({name: None}, {"compiler": None}) for name in WORDS[1:]]
    for changes, labels in cases:
        table = derived(setup_labels, **changes)
        row = table.frame.iloc[0]
        assert {name: None if pd.isna(row[name]) else row[name] for name in usual} == usual | labels, changes
        made = [column for column in table.columns if column.name in usual]
        assert all(column.role is Role.PROVENANCE and Tag.SLICE in column.tags for column in made)
