"""Labels that errors are reported by."""

import pandas as pd
import pytest

from perfcast.domains.servers.features import setup_labels
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

MACHINE = {
    "family": "Genoa",
    "ddr_gen": 5.0,
    "mem_eff_mts": 4800.0,
    "dimms_per_channel": 1.0,
    "compiler_vendor": "AOCC",
    "compiler_major_minor": "4.0",
}
WORDS = ("family", "compiler_vendor", "compiler_major_minor")


def derive(**change):
    columns = [
        Column(name, Kind.CATEGORICAL if name in WORDS else Kind.NUMERICAL, Role.FEATURE, "any") for name in MACHINE
    ]
    table = setup_labels.derive(build_table("machines", pd.DataFrame([{**MACHINE, **change}]), columns))
    assert {column.role for column in table.columns[len(MACHINE) :]} == {Role.PROVENANCE}
    assert all(Tag.SLICE in column.tags for column in table.columns[len(MACHINE) :])
    return table.frame.iloc[0]


@pytest.mark.parametrize(
    ("per_channel", "words"),
    [
        (0.5, "empty channels"),
        (1.0, "1 a channel"),
        (1.5, "1 or 2 a channel"),
        (2.0, "2 a channel"),
        (2.5, "more than 2 a channel"),
    ],
)
def test_a_memory_setup_in_words(per_channel, words):
    assert derive(dimms_per_channel=per_channel)["memory_setup"] == f"DDR5-4800, {words}"


def test_a_generation_is_the_design_of_the_cores_and_a_compiler_goes_by_its_first_number():
    labels = derive(compiler_vendor="Intel classic", compiler_major_minor="19.1")
    assert labels["generation"] == "Zen 4"
    assert labels["compiler"] == "Intel classic 19"


@pytest.mark.parametrize(
    ("column", "made"),
    [
        ("family", "generation"),
        ("ddr_gen", "memory_setup"),
        ("mem_eff_mts", "memory_setup"),
        ("dimms_per_channel", "memory_setup"),
        ("compiler_vendor", "compiler"),
        ("compiler_major_minor", "compiler"),
    ],
)
def test_what_is_not_known_is_missing(column, made):
    assert pd.isna(derive(**{column: None})[made])


def test_an_unknown_family_is_of_no_generation():
    assert pd.isna(derive(family="no such family")["generation"])
