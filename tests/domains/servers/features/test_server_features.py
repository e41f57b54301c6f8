"""Derived features of servers against values worked out by hand, and rules that hold for any input."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.features import memory, processor, system, workload
from perfcast.domains.servers.features.server_physics import POWER_CLOCK_MHZ
from perfcast.features.feature_math import version_number
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

MODULES = {"processor": processor, "memory": memory, "system": system, "workload": workload}
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
        Column(name, Kind.DATE if name in DATES else Kind.CATEGORICAL if name in TEXTS else Kind.NUMERICAL, role, "any")
        for name in REQUIRED
        for role in [Role.PROVENANCE if name in DATES else Role.FEATURE]
    ]
    return build_table("machines", frame, columns)


def derive(*rows, modules=tuple(MODULES)):
    table = make(rows or [{}])
    for name in modules:
        table = MODULES[name].derive(table)
    return table


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cores_enabled_share", 1),
        ("hw_threads_total", 128),
        ("l2_mb_total", 80),
        ("l3_mb_total", 96),
        ("l3_mb_per_core", 1.5),
        ("tdp_w_total", 410),
        ("tdp_w_per_core", 6.40625),
        ("turbo_ratio", 1.7),
        ("flops_per_cycle", 32),
        ("clock_base_total_ghz", 128),
        ("clock_turbo_total_ghz", 217.6),
        ("peak_gflops_base", 4096),
        ("mem_channels_total", 16),
        ("mem_channels_populated", 16),
        ("mem_channels_filled", 1),
        ("dimms_per_channel", 1),
        ("ranks_per_channel", 2),
        ("mem_speed_share", 1),
        ("mem_gbps_total", 409.6),
        ("mem_gbps_per_chip", 204.8),
        ("mem_gbps_per_core", 6.4),
        ("mem_gbps_per_core_ghz", 3.2),
        ("mem_gb_per_core", 16),
        ("has_hbm", 0),
        ("log_cores_enabled_total", math.log(64)),
        ("log_mem_gbps_per_core", math.log(6.4)),
        ("launch_year", 2021.25),
        ("hw_avail_year", 2021.25),
        ("sw_avail_year", 2020 + 11 / 12),
        ("hw_age_years", 0.75),
        ("sw_age_years", 13 / 12),
        ("kernel_version", 5.003),
        ("compiler_version", 21.001),
        ("compiler_release_year", 2020 + 11 / 12),
        ("compiler_age_years", 13 / 12),
    ],
)
def test_known_machine(name, value):
    assert derive().frame[name].item() == pytest.approx(value)


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"dimm_count": 32.0}, "mem_channels_populated", 16),
        ({"dimm_count": 32.0}, "dimms_per_channel", 2),
        ({"dimm_count": 32.0}, "mem_gbps_total", 409.6),
        ({"dimm_count": 4.0}, "mem_gbps_total", 102.4),
        ({"dimm_count": 4.0}, "mem_channels_filled", 0.25),
        ({"cores_enabled_total": 16.0}, "cores_enabled_share", 0.25),
        ({"hbm_gb": 128.0}, "has_hbm", 1),
        ({"hbm_gb": 128.0}, "mem_gbps_total", 409.6),
        ({"compiler_vendor": "Intel classic", "compiler_major_minor": "19.1"}, "compiler_version", 19.001),
        ({"compiler_vendor": "AOCC", "compiler_major_minor": "4.0"}, "compiler_release_year", 2022 + 10 / 12),
        ({"test_month": pd.Timestamp("2021-01-01")}, "hw_age_years", -0.25),
    ],
)
def test_variations(change, name, value):
    assert derive(change).frame[name].item() == pytest.approx(value)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"hbm_gb": 128.0, "dimm_count": 0.0}, ["mem_gbps_total", "log_mem_gbps_total", "mem_gbps_per_core_ghz"]),
        ({"compiler_vendor": "Nobody", "compiler_major_minor": "7.7"}, ["compiler_release_year", "compiler_age_years"]),
        ({"tdp_w": 0.0}, ["power_clock_mhz", "clock_power_total_ghz", "log_tdp_w_per_core"]),
        ({"kernel_series": "unknown"}, ["kernel_version"]),
        ({"cores_enabled_total": 0.0}, ["log_cores_enabled_total", "mem_gb_per_core"]),
    ],
)
def test_unknowable_is_missing(change, names):
    assert derive(change).frame[names].isna().all(axis=None)


def test_power_clock_between_its_limits():
    cool, equal, hot = (32 * (mhz / POWER_CLOCK_MHZ) ** 3 for mhz in (1000, 3400, 30000))
    clocks = derive({"tdp_w": cool}, {"tdp_w": equal}, {"tdp_w": hot}).frame["power_clock_mhz"]
    assert clocks[0] == pytest.approx(1000, rel=1e-3)
    assert clocks[1] == pytest.approx(3400 * 2 ** (-1 / 8))
    assert clocks[2] == pytest.approx(3400, rel=1e-3)


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=6).map(sorted))
@settings(deadline=None, max_examples=50)
def test_power_clock_grows_with_power_and_stays_below_turbo(watts):
    clocks = derive(*({"tdp_w": value} for value in watts), modules=["processor"]).frame["power_clock_mhz"]
    assert clocks.is_monotonic_increasing
    assert (clocks <= 3400).all()


def test_kernels_are_ordered_as_released():
    series = ["2.6", "3.10", "4.4", "4.12", "4.15-45-generic", "5.3", "5.14.21", "6.4"]
    assert (np.diff(version_number(np.array(series, dtype=object))) > 0).all()
    assert np.isnan(version_number(np.array(["", None, "1234567.8", "5.12345", "x"], dtype=object))).all()


def test_compilers_are_ordered_as_released():
    versions = ["17.0", "18.0", "19.0", "19.1", "2021.1", "2021.4", "2022.1", "2023.0", "2023.2", "2024.1"]
    frame = derive(*({"compiler_major_minor": version} for version in versions)).frame
    assert frame["compiler_version"].is_monotonic_increasing
    assert frame["compiler_release_year"].is_monotonic_increasing


def numbers():
    usual = st.sampled_from([0.0, 1.0, 2.0, 64.0, 3200.0])
    return st.one_of(usual, st.just(float("nan")), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(st.fixed_dictionaries({name: numbers() for name in NUMBERS}), min_size=3, max_size=8))
@settings(deadline=None, max_examples=40)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_never_infinite(rows):
    values = derive(*rows).frame.select_dtypes("float64")
    added = values.drop(columns=NUMBERS)
    assert not np.isinf(added.to_numpy()).any()


@pytest.mark.parametrize("name", REQUIRED)
def test_missing_in_gives_missing_out(name):
    whole = derive().frame
    table = derive({name: None})
    changed = [
        column
        for column in table.frame
        if column != name and not table.frame[column].isna().item() and not table.frame[column].equals(whole[column])
    ]
    used = [column for column in table.frame if column != name and table.frame[column].isna().item()]
    assert changed == []
    assert used


def test_all_missing_gives_all_missing():
    table = derive(dict.fromkeys(REQUIRED))
    assert table.frame.isna().all(axis=None)


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_lacking_column_is_an_error_of_the_configuration(module):
    table = make([{}])
    for name in module.REQUIRES:
        others = [column for column in table.columns if column.name != name]
        with pytest.raises(ValueError, match=name):
            module.derive(build_table("machines", table.frame, others))


def test_order_of_modules_does_not_matter():
    usual, turned = derive().frame, derive(modules=["workload", "system", "memory", "processor"]).frame
    pd.testing.assert_frame_equal(usual[sorted(usual)], turned[sorted(turned)])


def test_terms_of_the_scaling_law():
    assert derive().select(tag=Tag.SCALING) == ["power_clock_mhz", "flops_per_cycle", "mem_gbps_total", "l3_mb_total"]
