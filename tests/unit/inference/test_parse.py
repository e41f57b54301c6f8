"""CPU models that no data names: accepted by the design that the name tells, or by cores and clock."""

import pytest
from champion_project import KNOWN, predict, project

from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.inference import PredictOptions, read_machines
from perfcast.inference.parse import parse_machine
from perfcast.utils.errors import UserError


def parse(machine):
    (entry,) = read_machines(machine)
    parsed = parse_machine(entry, project().champion)
    return parsed.cells, " ".join(parsed.notes)


@pytest.mark.parametrize(
    ("name", "normalized", "design", "cells"),
    [
        ("Intel(R) Xeon(R) Gold 6599Y CPU @ 2.00GHz", "xeon gold 6599y", "Emerald Rapids", {}),
        ("XeonGold6599Y", "xeon gold 6599y", "Emerald Rapids", {}),
        (
            "Ampere Altra Q72-26",
            "altra q72-26",
            "Altra",
            {"cores_per_chip_of_cpu_model": 72.0, "base_mhz": 2600.0},
        ),
        ("Xeon Future", "Xeon Future", "", {"cpu_vendor": "Intel", "isa": "x86"}),
        ("Zeus 1", "Zeus 1", "", {}),
    ],
)
def test_read_cpu_name_returns_what_a_name_tells(name, normalized, design, cells):
    assert RULES.read_entity_name(name) == (normalized, design, cells)


def test_a_name_of_a_known_design_is_enough():
    cells, note = parse({"processor": "Xeon Gold 6199", "chips": 2})
    assert cells == {"cpu_model": "xeon gold 6199", "chips": 2.0}
    assert "no data names the processor 'Xeon Gold 6199'" in note
    assert "the design Skylake-SP, which was measured; add cores, clock, turbo, tdp, l3" in note
    (prediction,) = predict({"processor": "Xeon Gold 6199", "chips": 2}, options=PredictOptions(neighbors=0))
    origins = {value.column: value.origin for value in prediction.values}
    assert [origins[name] for name in ("family", "cores_per_chip_of_cpu_model", "base_mhz")] == [
        *("looked up", "assumed", "assumed"),
    ]


def test_a_name_that_tells_nothing_needs_cores_and_clock_only():
    with pytest.raises(UserError, match=r"^processor must be .*'Zeus 1'; describe a new one: add cores, clock$"):
        parse({"processor": "Zeus 1", "chips": 2})
    described = {"processor": "Zeus 1", "chips": 2, "cores": 32, "clock": "2.5 GHz"}
    assert "its design included; add family, turbo, tdp, l3 to narrow" in parse(described)[1]
    (prediction,) = predict(described, options=PredictOptions(neighbors=0))
    assert {value.column: value.origin for value in prediction.values}["family"] == "assumed"
    (known,) = predict({"processor": KNOWN["processor"], "chips": 2}, options=PredictOptions())
    assert prediction.estimates[0].in_domain_score < known.estimates[0].in_domain_score


def test_another_model_number_is_never_answered_as_a_known_one():
    cells, note = parse({"processor": "Xeon Gold 6148Z", "chips": 2})
    assert cells["cpu_model"] == "xeon gold 6148z"
    assert "known names: xeon gold 6148" in note


def test_a_given_family_replaces_that_of_the_name():
    cells, note = parse({"processor": "Xeon Gold 6199", "family": "Cascade Lake-SP", "chips": 2})
    assert cells["family"] == "Cascade Lake-SP"
    assert "the design Cascade Lake-SP" in note
