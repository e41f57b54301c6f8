"""Derived features of the Java benchmarks against values worked out by hand."""

import pandas as pd
import pytest

from perfcast.domains.servers.features import jvm, node_power
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

DATES = ("test_month", "hw_avail", "launch_quarter")
# Two processors of 20 cores at 2.0 (3.0) GHz and 150 W, 12 DIMMs of 32 GB, one supply of 800 W, Java 17.0.2.
MACHINE = {
    **{
        "chips": 2.0,
        "cores_enabled_total": 40.0,
        "cores_per_chip_of_cpu_model": 20.0,
        "threads_per_core": 2.0,
        "nodes": 1.0,
    },
    **{"base_mhz": 2000.0, "max_turbo_mhz": 3000.0, "tdp_w": 150.0, "dimm_count": 12.0, "mem_total_gb": 384.0},
    **{"psu_count": 1.0, "psu_w": 800.0, "jvm_release": 17.0, "jvm_update": 2.0},
    **{"test_month": "2022-07-01", "hw_avail": "2022-01-01", "launch_quarter": "2021-04-01"},
}


def derived(module, **changes):
    names = module.REQUIRES
    columns = [Column(name, Kind.DATE if name in DATES else Kind.NUMERICAL, Role.FEATURE, "all") for name in names]
    frame = pd.DataFrame([{**MACHINE, **changes}])[list(names)]
    return module.derive(build_table("one", frame, columns))


def test_virtual_machine():
    row = derived(jvm).frame.iloc[0]
    assert row["jvm_version"] == pytest.approx(17.002)
    assert row["jvm_release_year"] == pytest.approx(2021.67)
    assert row["jvm_age_years"] == pytest.approx(0.83)
    assert row["mem_gb_per_thread"] == pytest.approx(4.8)
    assert derived(jvm, nodes=4.0).frame["cores_per_node"][0] == 10


@pytest.mark.parametrize(
    ("release", "year"), [(8.0, 2014.17), (10.0, 2018.17), (21.0, 2023.67), (4.0, None), (None, None)]
)
def test_release_years(release, year):
    derived_year = derived(jvm, jvm_release=release).frame["jvm_release_year"][0]
    assert pd.isna(derived_year) if year is None else derived_year == pytest.approx(year)


def test_power_of_the_parts():
    table = derived(node_power)
    row = table.frame.iloc[0]
    assert row["parts_w"] == 2 * 150 + 12 * 4
    assert row["base_ghz_per_w"] == pytest.approx(80 / 348)
    assert row["parts_w_per_core"] == pytest.approx(8.7)
    assert row["psu_load"] == pytest.approx(348 / 800)
    assert (row["shares_enclosure"], row["design_age_years"]) == (0, pytest.approx(0.75))
    assert {"parts_w", "power_ghz_per_w"} == set(table.select(tag=Tag.SCALING))


def test_what_is_not_known_stays_missing():
    row = derived(node_power, tdp_w=None, psu_w=None).frame.iloc[0]
    assert row[["parts_w", "base_ghz_per_w", "psu_w_total", "psu_load", "log_parts_w"]].isna().all()
