"""Cloud instances: shares of hosts, as machines that every answer takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bridged_project import bridged_pair
from champion_project import project

from perfcast.api import Champion, with_operations
from perfcast.domains.servers.processors.cloud_instances import SOURCE
from perfcast.inference.machine_files import make_entry
from perfcast.inference.options import PredictOptions
from perfcast.inference.predict import predict_machines
from perfcast.inference.reference_data import ReferenceData
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

HEADER = "instance_type,vcpus,cpu_model,family,threads_per_core,other_families,memory_gb\n"
ROWS = """x1.large,4,xeon gold 6148,,2,,16
x1.metal,80,xeon gold 6148,,2,,320
Standard_X8_v1,8,Intel Xeon Gold 6148,,2,Milan/Genoa,32
x2.large,2,xeon gold 6148,,1,,8
x3.large,8,,Milan,,,32
x4.large,2,xeon gibberish,,2,,8
x5.large,2,,No Such Lake,2,,8
x6.large,8,xeon gibberish,Genoa,2,,32
x7.large,8,xeon gold 6148,,2,,32
x7.nano,1,xeon gold 6148,,2,,4
x7.huge,112,xeon gold 6148,,2,,448
"""


@pytest.fixture(scope="module")
def listed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("instances")
    (folder / "cloud_instances.csv").write_text(HEADER + ROWS)
    return folder


def add_instances(champion, listed: Path):
    measured = champion.reference_data.measured
    facts = champion.rules.typical_values.read_entity_facts(
        {**project().raw, SOURCE: listed}, measured.frame["cpu_model"].unique()
    )
    return replace(champion, reference_data=ReferenceData(measured, facts))


@pytest.fixture(scope="module")
def champion(listed) -> Champion:
    return with_operations(add_instances(project().champion, listed))


def scores(champion: Champion, name: str, **fields) -> dict[str, float]:
    (machine,) = champion.predict({"processor": name, **fields}, neighbors=0, explain=False).machines
    return {each.task: each.median for each in machine.estimates}


def test_rate_of_an_instance_is_its_share_of_the_host(champion):
    whole = scores(champion, "Xeon Gold 6148", chips=1)
    instance = scores(champion, "x1.large")
    for task, score in instance.items():
        if "rate" in task:
            assert score == pytest.approx(whole[task] * 2 / 20, rel=0.2)  # with software of its own draws


def test_an_instance_may_be_half_a_core_or_on_four_sockets(champion):
    small, large = (scores(champion, name)["SPECrate2017_int_base"] for name in ("x7.nano", "x7.large"))
    assert small == pytest.approx(large / 8, rel=0.05)
    (huge,) = champion.predict({"processor": "x7.huge"}).machines
    assert huge.machine == "x7.huge"  # its processors are not its number
    assert not any("chips is not given" in note for note in huge.notes)
    assert not any(each.trust == "high" for each in huge.estimates)


def test_answers_say_that_a_share_of_a_host_was_not_measured(champion):
    (machine,) = champion.predict({"processor": "x1.large"}).machines
    (note,) = [each for each in machine.notes if "share of a host" in each]
    assert "no SPEC result was measured there" in note
    assert "2 of 20 cores of xeon-gold-6148" in note
    assert all(each.published is None for each in machine.estimates)
    (processor,) = champion.predict({"processor": "Xeon Gold 6148", "chips": 1}).machines
    assert not any("share of a host" in each for each in processor.notes)


def test_hosts_of_several_families_are_mixed(champion):
    (mixed,) = champion.predict({"processor": "Standard_X8_v1"}, neighbors=0).machines
    families = ("Skylake-SP", "Milan", "Genoa")
    (note,) = [each for each in mixed.notes if "share of a host" in each]
    assert "4 cores" in note
    assert all(f"({family})" in note for family in families)
    assert mixed.machine == "standard_x8_v1"
    by_family = [scores(champion, "standard_x8_v1", family=family) for family in families]
    for each in mixed.estimates:
        alone = sorted(medians[each.task] for medians in by_family)
        assert alone[0] <= each.median <= alone[-1]
        assert each.low < alone[0]
        assert each.high > alone[-1]


def test_instance_of_a_family_is_on_hosts_of_this_family(champion):
    (machine,) = champion.predict({"processor": "x3.large"}).machines
    (note,) = [each for each in machine.notes if "share of a host" in each]
    assert "(Milan)" in note
    assert "4 of " in note or "4 cores" in note  # 8 threads
    (other,) = champion.predict({"processor": "x6.large"}).machines
    assert any("(Genoa)" in each or "epyc-9" in each for each in other.notes)


def test_instances_have_answers_in_both_suites(champion, listed):
    name = "standard_x8_v1"
    bridged = add_instances(bridged_pair().last, listed)
    bridged = replace(bridged, base=replace(bridged.base, champion=champion))
    pair = Suites(champion, bridged)
    options = PredictOptions(neighbors=0, explain=False)
    (machine,) = predict_machines([make_entry(1, name, {"processor": name})], pair, options).machines
    assert len(machine.estimates) == 8
    assert len(machine.ratios) == 4
    alone = {each.task: each.median for each in machine.estimates}
    for ratio in machine.ratios:
        assert ratio.low < ratio.median < ratio.high
        assert ratio.median == pytest.approx(alone[ratio.task] / alone[ratio.base_task], rel=0.25)


def test_instances_stand_in_comparisons_rankings_and_fleets(champion):
    assert champion.compare([{"processor": "x1.large"}, {"processor": "x1.metal"}]).pairs
    ranking = champion.rank([{"processor": "x1.large"}, {"processor": "x1.metal"}])
    assert [each.line for each in ranking.candidates] == [2, 1]
    fleet = [{"processor": "x1.large", "count": 200}]
    target = champion.size(fleet, {"processor": "x1.metal"}, mix="int_rate").targets[0]
    large, metal = (
        next(each.median for each in machine.estimates if each.task == "SPECrate2017_int_base")
        for machine in champion.predict([{"processor": "x1.large"}, {"processor": "x1.metal"}]).machines
    )
    assert target.ratio == pytest.approx(metal / large, rel=0.02)
    # twenty times the cores
    assert 15 < target.ratio < 25
    assert target.totals["cores"] == target.needed * 40


@pytest.mark.parametrize("name", ["x4.large", "x5.large", "x9.large"])
def test_instance_without_a_known_processor_and_family_is_refused(champion, name):
    with pytest.raises(UserError, match="known CPU model"):
        champion.predict({"processor": name})


def test_instance_has_no_more_sockets_than_its_host(champion):
    with pytest.raises(UserError, match="sockets"):
        champion.predict({"processor": "x1.large", "chips": 2})


def test_facts_before_a_day_have_no_instances(champion, tmp_path):
    (tmp_path / "cloud_instances.csv").write_text(HEADER + ROWS)
    raw = {**project().raw, SOURCE: tmp_path}
    facts = champion.rules.typical_values.read_entity_facts(raw, [], as_of=np.datetime64("2020-01-01"))
    assert "x1.large" not in facts.index


MACHINE = {"processor": "Xeon Gold 6148", "chips": 1, "memory": "24 GB"}


def test_match_is_the_smallest_instance_that_is_fast_and_has_the_memory(champion):
    matched = champion.match(MACHINE, mix="int_rate", sure=0.5)
    first = matched.targets[0]
    assert first.needed == 1
    assert first.totals["GB of memory"] >= 24
    assert max(first.needs.values()) <= 1
    rooms = [1 / min(each.needs.values()) for each in matched.targets]
    assert rooms == sorted(rooms)
    assert first.limiting in ("speed", "memory")


def test_match_does_not_hang_on_the_order_of_a_list_and_agrees_with_the_sizing(
    champion,
):
    among = [{"processor": "Xeon Gold 6148", "chips": 1, "memory": f"{size} GB"} for size in (512, 16, 48, 96)]
    matched = champion.match(MACHINE, among=among, mix="int_rate", sure=0.5)
    assert [each.totals["GB of memory"] for each in matched.targets] == [48, 96, 512]
    sized = champion.size({**MACHINE, "count": 1}, among[2], mix="int_rate", sure=0.5).targets[0]
    assert sized.ratio == pytest.approx(matched.targets[0].ratio, rel=1e-3)
    assert sized.needs["memory"] == matched.targets[0].needs["memory"] == 0.5


def test_nothing_that_replaces_is_one_line(champion):
    with pytest.raises(UserError, match="one of the list must replace machine 1"):
        champion.match({**MACHINE, "memory": "512 GB"}, among=[MACHINE], mix="int_rate")


def test_name_that_begins_as_a_number_of_units_is_a_name(champion):
    parsed = champion.fields.parse({"processor": "12xcpu-48gb"}, "the machine").cells
    assert parsed == {"cpu_model": "12xcpu-48gb"}
    parsed = champion.fields.parse({"processor": "2xEPYC 7742"}, "the machine").cells
    assert parsed == {"cpu_model": "EPYC 7742", "chips": 2.0}
