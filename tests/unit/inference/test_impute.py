"""Imputation of a described machine: values, their origins, and violated limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, KNOWN, is_possible, make_cells, project

from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.cells import ORIGINS, Cells, EntityFacts
from perfcast.inference.donors import HotDeck
from perfcast.inference.draws import complete_machines
from perfcast.inference.reference_data import describing_columns
from perfcast.schema.table import Table
from perfcast.utils.errors import UserError


def only_row(cells):
    """Return the cells of one machine by column."""
    return cells.to_frame().iloc[0]


def test_describing_columns_are_features_keys_fields_and_dates():
    names = {column.name for column in describing_columns(project().standard, FEATURES)}
    assert {
        "cpu_model",
        "suite",
        "cores_enabled_total",
        "hw_avail",
        "sw_avail",
        "test_month",
        "launch_quarter",
    } <= names
    assert "cores_per_chip_stated" in names
    assert not {"base_score", "peak_score", "published_month", "updated", "q_date"} & names


def test_fill_cpu_facts_keeps_given_values():
    known = only_row(
        RULES.fill_entity_facts(
            make_cells(cpu_model="xeon gold 6148", simd_bits=256.0),
            EntityFacts(RULES.read_entity_facts({}, ["xeon gold 6148"])),
        )
    )
    assert known["cpu_model_id"] == "xeon-gold-6148"
    assert known["family"] == "Skylake-SP"
    assert known["mem_channels_per_chip"] == 6
    assert known["simd_bits"] == 256
    assert np.isnan(known["tdp_w"])


def test_fill_cpu_facts_uses_the_catalog():
    listed = project().standard.frame.dropna(subset=["tdp_w"]).iloc[0]
    facts = project().champion.reference_data.facts_by_model
    known = only_row(RULES.fill_entity_facts(make_cells(cpu_model=listed["cpu_model"]), facts))
    assert known["tdp_w"] == listed["tdp_w"]


def test_fill_cpu_facts_of_an_unknown_name_uses_its_family():
    listed = EntityFacts(RULES.read_entity_facts({}, ["xeon gold 6148"]))
    known = only_row(RULES.fill_entity_facts(make_cells(cpu_model="xeon gold 6149"), listed))
    assert known["family"] == "Skylake-SP"
    facts = project().champion.reference_data.facts_by_model
    unknown = only_row(RULES.fill_entity_facts(make_cells(cpu_model="foo 99"), facts))
    assert unknown[["family", "tdp_w", "simd_bits", "cores_per_chip_of_cpu_model"]].isna().all()


def test_fill_implied_derives_cells():
    memory = {"dimm_count": 24.0, "dimm_gb": 64.0, "mem_rated_mts": 6400.0, "mem_max_mts_1dpc": 6000.0}
    implied = only_row(RULES.fill_implied(make_cells(chips=2.0, cores_per_chip_stated=96.0, isa="x86", **memory)))
    assert implied["cores_per_chip_of_cpu_model"] == 96
    assert implied["cores_enabled_total"] == 192
    assert implied["mem_total_gb"] == 1536
    assert implied["mem_eff_mts"] == 6000
    assert implied["arch"] == "x86_64"


def test_memory_rate_of_the_processor_limit_is_usual_and_not_implied():
    machine = make_cells(mem_max_mts_1dpc=6000.0, mem_channels_per_chip=12.0, chips=2.0)
    assert np.isnan(RULES.fill_implied(machine)["mem_eff_mts"][0])
    usual = only_row(RULES.fill_usual(machine, pd.Timestamp("2024-12-01")))
    assert usual["mem_rated_mts"] == 6000
    assert usual["dimm_count"] == 24
    assert usual["test_month"] == pd.Timestamp("2024-12-01")


@pytest.mark.parametrize(
    ("cells", "column", "fact"),
    [
        ({"chips": 3.0, "max_sockets": 2.0}, "chips", "3 is more than the 2 sockets that {entity} supports"),
        ({"chips": 2.0, "cores_enabled_total": 193.0}, "cores_enabled_total", "193 in total cannot be shared equally"),
        (
            {"chips": 2.0, "cores_enabled_total": 194.0, "cores_per_chip_of_cpu_model": 96.0},
            *("cores_per_chip_stated", "97 per chip is more than the 96 of {entity}"),
        ),
        ({"base_mhz": 4000.0, "max_turbo_mhz": 3000.0}, "base_mhz", "4000 MHz is above the turbo clock of 3000 MHz"),
        (
            {"dimm_count": 26.0, "chips": 1.0, "mem_channels_per_chip": 12.0},
            "dimm_count",
            "more than 2 in each of the 12",
        ),
        ({"mem_total_gb": 100.0, "dimm_count": 2.0, "dimm_gb": 64.0}, "mem_total_gb", "is not 2 modules of 64 GiB"),
        ({"mem_rated_mts": 6400.0, "ddr_gen": 4.0}, "mem_rated_mts", "no rate of DDR4, which has 1600 to 3600 MT/s"),
        ({"mem_running_mts": 3200.0, "mem_rated_mts": 2933.0}, "mem_running_mts", "above the rated 2933 MT/s"),
    ],
)
def test_find_violations_states_the_values(cells, column, fact):
    (violation,) = RULES.find_violations(make_cells(**cells))
    assert violation.columns[0] == column
    assert fact in violation.fact
    assert violation.remedy


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({**KNOWN, "cores": 24}, "cores.* 24 per chip is more than the 20 of Xeon Gold 6148 .machine 1.*orrect it"),
        ({**KNOWN, "cores_enabled_total": 48}, "cores_enabled_total.* 24 per chip is more than the 20 of Xeon Gold"),
        ({**KNOWN, "chips": 4}, "chips.* 4 is more than the 2 sockets"),
        ({"processor": "XeonGold6148", "sockets": 4}, "sockets.* 4 is more than the 2 sockets that XeonGold6148"),
        ({**KNOWN, "memory": "26 x 64 GB DDR4-2666"}, "memory.* 26 modules are more than 2 in each of the 12"),
        ({**KNOWN, "memory": "4 x 64 GB DDR4-6400"}, "memory.* 6400 MT/s is no rate of DDR4"),
    ],
)
def test_impute_names_the_violated_field_as_typed(machine, message):
    champion = project().champion
    with pytest.raises(UserError, match=rf"^{message}"):
        complete_machines(parse_machines(read_machines(machine), champion), champion)


def test_uneven_modules_are_a_note():
    champion = project().champion
    parsed = parse_machines(read_machines({**KNOWN, "memory": "3 x 64 GB DDR4-2666"}), champion)
    assert parsed.notes[1] == ("3 memory modules are not shared equally by 2 processors",)
    assert complete_machines(parsed, champion).frame["dimm_count"].tolist() == [3.0] * 4


def test_find_violations_accepts_most_measured_machines():
    """The generated results have the published ones' mistakes, so not all of them."""
    frame = project().standard.frame.head(100)
    assert sum(is_possible(frame.loc[[row]]) for row in frame.index) > 80


def test_hot_deck_fills_a_block_from_one_similar_result():
    hot_deck = HotDeck(project().champion.reference_data.measured)
    block = next(block for block in RULES.blocks if block.name == "compiler")
    machine = make_cells(suite="CINT2017rate", cpu_vendor="Intel")
    lent = only_row(hot_deck.fill(machine, block))
    alike = hot_deck.frame[(hot_deck.frame["suite"] == "CINT2017rate") & (hot_deck.frame["cpu_vendor"] == "Intel")]
    assert (
        (alike[["compiler_vendor", "compiler_major_minor"]] == lent[["compiler_vendor", "compiler_major_minor"]])
        .all(axis=1)
        .any()
    )
    assert lent[list(block.columns)].notna().all()
    gcc = make_cells(suite="CINT2017rate", cpu_vendor="Intel", compiler_vendor="GCC")
    with_compiler = only_row(hot_deck.fill(gcc, block))
    assert with_compiler["compiler_vendor"] == "GCC"


def test_hot_deck_leaves_out_columns_that_the_dataset_lacks():
    measured = project().champion.reference_data.measured
    lacking = tuple(column for column in measured.columns if column.name not in ("oneapi", "isa"))
    hot_deck = HotDeck(Table(measured.dataset, measured.frame.drop(columns=["oneapi", "isa"]), lacking))
    block = next(block for block in RULES.blocks if block.name == "compiler")
    whole = make_cells(suite="CINT2017rate", cpu_vendor="Intel")
    machine = Cells({name: whole[name] for name in whole if name not in ("oneapi", "isa")}, whole.index)
    lent = only_row(hot_deck.fill(machine, block))
    assert lent[["compiler_vendor", "compiler_major_minor"]].notna().all()
    assert hot_deck.fill(machine, replace(block, columns=("oneapi",))) is machine


def test_impute_records_the_origin_of_every_value():
    champion = project().champion
    described = parse_machines(read_machines(KNOWN), champion)
    completed = complete_machines(described, champion)
    assert set(np.unique(completed.origins.to_numpy().astype(str))) <= set(ORIGINS)
    missing = completed.frame.isna().to_numpy()
    assert (completed.origins.to_numpy() == "missing").tolist() == missing.tolist()
    row = completed.origins.iloc[0]
    assert row[["cpu_model", "family", "compiler_vendor"]].tolist() == ["given", "looked up", "assumed"]
    without = complete_machines(described, champion, assume=False).origins
    assert not (without == "assumed").any(axis=None)
