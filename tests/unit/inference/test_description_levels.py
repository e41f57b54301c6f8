"""Levels of description: what is given at each, and the level of what a user gave."""

from champion_project import project

from perfcast.experiment.described import describe_rows
from perfcast.inference.champion import list_levels
from perfcast.inference.machine_predictions import find_level
from perfcast.inference.rules.description_rules import find_rules


def levels():
    champion = project().champion
    return list_levels(champion.rules.names, champion.reference_data.measured, list(champion.fields.columns))


def test_levels_grow_and_the_last_has_everything_but_what_the_name_tells():
    name, chips, memory, sheet, everything = levels()
    assert name == ("suite", "cpu_model")
    assert chips == ("suite", "cpu_model", "chips")
    assert set(memory) - set(chips) == {"dimm_count", "dimm_gb", "ddr_gen", "mem_rated_mts"}
    assert {"base_mhz", "tdp_w"} <= set(sheet) - set(memory)
    assert {"compiler_vendor", "os_name", "test_month", "chips"} <= set(everything)
    assert not {"family", "tier", "base_score"} & set(everything)


def test_a_dataset_without_levels_has_none():
    assert list_levels(find_rules("host_gemm").names, project().standard, ["a"]) == ()


def test_the_level_of_given_columns_is_the_one_that_agrees_best():
    assert find_level({"cpu_model"}, levels()) == 1
    assert find_level({"suite", "cpu_model", "chips"}, levels()) == 2
    assert find_level({"cpu_model", "chips", "dimm_count", "dimm_gb", "ddr_gen"}, levels()) == 3
    assert find_level({"cpu_model", "chips", "base_mhz", "cores_per_chip_stated", "tdp_w", "dimm_gb"}, levels()) == 4
    for number, columns in enumerate(levels(), start=1):
        assert find_level(columns, levels()) == number


def test_described_rows_have_the_known_cells_of_the_level():
    standard = project().standard
    frame = standard.frame.iloc[:3].assign(mem_rated_mts=[2933.0, float("nan"), 2666.0])
    entries = list(describe_rows(frame, standard, ("cpu_model", "mem_rated_mts", "test_month")))
    assert [entry.line for entry in entries] == [0, 1, 2]
    assert entries[0].values["mem_rated_mts"] == 2933.0
    assert "mem_rated_mts" not in entries[1].values
    assert entries[0].values["test_month"] == f"{frame['test_month'].iloc[0]:%Y-%m}"
