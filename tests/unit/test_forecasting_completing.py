"""What is completed of a described machine, where each value comes from, and what cannot be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from forecasting_project import FEATURES, KNOWN, can_be, empty, project

from perfcast.completion.spec_cpu2017 import BLOCKS, assume, complete_machine, complete_part, parts, refuse
from perfcast.errors import UserError
from perfcast.forecasting import describe
from perfcast.forecasting.completing import ORIGINS, complete
from perfcast.forecasting.donors import Donors
from perfcast.forecasting.knowledge import describing_columns
from perfcast.forecasting.library import entries_from


def test_machines_are_described_by_features_keys_fields_and_dates_that_features_read():
    names = {column.name for column in describing_columns(project().standard, FEATURES)}
    assert {"part_key", "suite", "cores_enabled_total", "hw_avail", "sw_avail", "test_month", "launch_quarter"} <= names
    assert "cores_per_chip_stated" in names
    assert not {"base_score", "peak_score", "published_month", "updated", "q_date"} & names


def test_a_known_part_is_completed_and_given_values_win():
    known = complete_part(empty(part_key="xeon gold 6148", simd_bits=256.0), parts({}, ["xeon gold 6148"])).iloc[0]
    assert known["part_id"] == "xeon-gold-6148"
    assert known["family"] == "Skylake-SP"
    assert known["mem_channels_per_chip"] == 6
    assert known["simd_bits"] == 256
    assert np.isnan(known["tdp_w"])


def test_the_catalogue_completes_what_the_family_does_not_know():
    listed = project().standard.frame.dropna(subset=["tdp_w"]).iloc[0]
    known = complete_part(empty(part_key=listed["part_key"]), project().champion.knowledge.parts).iloc[0]
    assert known["tdp_w"] == listed["tdp_w"]


def test_a_name_that_no_table_holds_has_the_facts_of_its_family_alone():
    facts = complete_part(empty(part_key="xeon gold 6149"), parts({}, ["xeon gold 6148"])).iloc[0]
    assert facts["family"] == "Skylake-SP"
    unknown = complete_part(empty(part_key="foo 99"), project().champion.knowledge.parts).iloc[0]
    assert unknown[["family", "tdp_w", "simd_bits", "cores_per_chip_part"]].isna().all()


def test_cells_follow_from_other_cells():
    memory = {"dimm_count": 24.0, "dimm_gb": 64.0, "mem_rated_mts": 6400.0, "mem_max_mts_1dpc": 6000.0}
    implied = complete_machine(empty(chips=2.0, cores_per_chip_stated=96.0, isa="x86", **memory)).iloc[0]
    assert implied["cores_per_chip_part"] == 96
    assert implied["cores_enabled_total"] == 192
    assert implied["mem_total_gb"] == 1536
    assert implied["mem_eff_mts"] == 6000
    assert implied["arch"] == "x86_64"


def test_no_memory_rate_follows_from_the_processors_limit_alone_but_it_is_assumed():
    machine = empty(mem_max_mts_1dpc=6000.0, mem_channels_per_chip=12.0, chips=2.0)
    assert np.isnan(complete_machine(machine).iloc[0]["mem_eff_mts"])
    usual = assume(machine, pd.Timestamp("2024-12-01")).iloc[0]
    assert usual["mem_rated_mts"] == 6000
    assert usual["dimm_count"] == 24
    assert usual["test_month"] == pd.Timestamp("2024-12-01")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"chips": 3.0, "max_sockets": 2.0}, "chips 3, max_sockets 2"),
        ({"chips": 2.0, "cores_enabled_total": 193.0}, "the same in every one"),
        ({"chips": 2.0, "cores_enabled_total": 194.0, "cores_per_chip_part": 96.0}, "at most chips x"),
        ({"base_mhz": 4000.0, "max_turbo_mhz": 3000.0}, "base_mhz 4000"),
        ({"dimm_count": 3.0, "chips": 2.0}, "multiple of chips"),
        ({"dimm_count": 26.0, "chips": 1.0, "mem_channels_per_chip": 12.0}, "at most 2 in each"),
        ({"mem_total_gb": 100.0, "dimm_count": 2.0, "dimm_gb": 64.0}, "dimm_count x dimm_gb"),
        ({"mem_rated_mts": 6400.0, "ddr_gen": 4.0}, "rate of DDR generation"),
        ({"mem_running_mts": 3200.0, "mem_rated_mts": 2933.0}, "at most mem_rated_mts"),
    ],
)
def test_what_cannot_be_is_refused_with_its_values(cells, said):
    with pytest.raises(UserError, match="must be") as error:
        refuse(empty(**cells))
    assert said in str(error.value)


def test_most_measured_machinescan_be():
    """The generated results have the published ones' mistakes, so not all of them."""
    frame = project().standard.frame.head(100)
    assert sum(can_be(frame.loc[[row]]) for row in frame.index) > 80


def test_what_is_usual_is_taken_from_one_result_like_the_machine():
    donors = Donors(project().champion.knowledge.measured)
    block = next(one for one in BLOCKS if one.name == "compiler")
    machine = empty(suite="CINT2017rate", cpu_vendor="Intel")
    lent = donors.fill(machine, block).iloc[0]
    alike = donors.frame[(donors.frame["suite"] == "CINT2017rate") & (donors.frame["cpu_vendor"] == "Intel")]
    assert (
        (alike[["compiler_vendor", "compiler_major_minor"]] == lent[["compiler_vendor", "compiler_major_minor"]])
        .all(axis=1)
        .any()
    )
    assert lent[list(block.columns)].notna().all()
    kept = donors.fill(empty(suite="CINT2017rate", cpu_vendor="Intel", compiler_vendor="GCC"), block).iloc[0]
    assert kept["compiler_vendor"] == "GCC"


def test_only_results_until_the_month_asked_lend():
    measured = project().champion.knowledge.measured
    early = measured.frame["published_month"].sort_values().iloc[50]
    assert Donors(measured, early).last == early
    assert Donors(measured, early).frame["published_month"].max() == early


def test_every_value_says_where_it_comes_from():
    champion = project().champion
    described = describe(entries_from(KNOWN), champion)
    completed = complete(described.frame, champion.knowledge, champion.donors)
    assert set(np.unique(completed.origins.to_numpy().astype(str))) <= set(ORIGINS)
    missing = completed.frame.isna().to_numpy()
    assert (completed.origins.to_numpy() == "missing").tolist() == missing.tolist()
    row = completed.origins.iloc[0]
    assert row[["part_key", "family", "compiler_vendor"]].tolist() == ["given", "looked up", "assumed"]
    without = complete(described.frame, champion.knowledge, None).origins
    assert not (without == "assumed").any(axis=None)
