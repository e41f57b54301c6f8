"""Watts and energy of fleets: their sources, the load that is left, and intervals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from champion_project import project
from hypothesis import given, settings
from hypothesis import strategies as st
from power_project import power_folder

import perfcast
from perfcast.cli.main import main
from perfcast.decisions.fleet_power import DESIGN, ESTIMATED, GIVEN, MEASURED, PowerDraws
from perfcast.decisions.sizing_request import SizingRequest
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.utils.errors import UserError

OLD = {"count": 400, "processor": "Xeon Gold 6148", "chips": 2, "utilization": 0.5}
NEW = {"processor": "Xeon Gold 6148", "chips": 2}
FULL_YEAR = 8.766
"""Thousand hours."""


@cache
def champion(*, power: bool = True) -> perfcast.api.Champion:
    return perfcast.load_champion(project().folder, power=power_folder() if power else None)


def size(fleet=OLD, onto=NEW, *, power=True, **options):
    return champion(power=power).size(fleet, onto, mix="int_rate", **options)


@given(
    st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=1, max_size=5),
    st.integers(1, 1000),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_energy_rises_with_the_load_and_starts_at_idle(watts, count, first, second):
    idle, full = np.array(watts).T
    draws = PowerDraws(idle, full, GIVEN)
    less, more = (draws.energy(count, count * load) for load in sorted((first, second)))
    assert (less <= more * (1 + 1e-12)).all()
    assert draws.energy(count, 0.0) == pytest.approx(count * idle * FULL_YEAR)
    assert draws.energy(count, float(count)) == pytest.approx(count * np.maximum(idle, full) * FULL_YEAR)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.05, 1.0), st.integers(0, 30), st.booleans())
def test_interval_of_energy_contains_it_and_lies_below_that_of_full_load(utilization, spare, power):
    answer = size({**OLD, "utilization": utilization}, spare=spare, power=power)
    (target,) = answer.targets
    for each in (answer, target):
        assert 0 < each.energy_low < each.energy < each.energy_high
        assert each.energy <= each.watts * FULL_YEAR * 1.001
    assert target.load == pytest.approx(min(400 * utilization / target.needed, 1), rel=0.01)


def test_watts_are_published_ones_before_estimates_before_the_design_power():
    given_watts = {**NEW, "watts": 500}
    measured, unseen, given = size(onto=[NEW, {**NEW, "cores": 7}, given_watts]).targets
    assert [each.watts_basis for each in (measured, unseen, given)] == [MEASURED, ESTIMATED, GIVEN]
    frame = champion().power.reference_data.measured.frame
    rows = frame[(frame["cpu_model"] == "xeon gold 6148") & (frame["chips"] == 2)]
    assert measured.watts / measured.needed == pytest.approx(rows["watts_100"].median(), rel=0.01)
    assert given.watts == given.needed * 500
    (design,) = size(power=False).targets
    assumed = champion().rank(NEW, by="score/watts").candidates[0].watts
    (ratio, _), _ = SPEC_CPU2017.presentation.power_ratios
    assert design.watts_basis == DESIGN
    assert design.watts / design.needed == pytest.approx(assumed * np.exp(ratio), rel=0.02)


def test_notes_name_the_source_of_watts():
    assert any("spec_power" in note for note in size().notes)
    assert any(note.startswith("watts: TDP") for note in size(power=False).notes)
    assert not any(note.startswith("watts") for note in size(onto={**NEW, "watts": 500}).notes)


def test_known_watts_narrow_the_energy():
    known, design = (size(power=power).targets[0] for power in (True, False))
    widths = [np.log(each.energy_high / each.energy_low) for each in (known, design)]
    assert widths[0] < widths[1]


def test_energy_of_the_fleet_rises_with_its_utilization_and_fields_of_scores_do_not_refuse_its_watts():
    used = [size({**OLD, "utilization": share}).energy for share in (0.1, 0.5, 1.0)]
    assert used == sorted(used)
    named = size({**OLD, "compiler": "Intel oneAPI 2023"}, {**NEW, "compiler": "Intel oneAPI 2023"})
    assert named.targets[0].watts_basis in {MEASURED, ESTIMATED}


def test_growth_fills_the_machines_over_the_years():
    plain = SizingRequest({}, growth=0.0, years=3).mean_growth
    steps = np.linspace(0, 3, 10_001)
    assert (plain, SizingRequest({}, growth=0.2, years=3).mean_growth) == (
        1.0,
        pytest.approx(np.mean(1.2**steps), rel=1e-4),
    )
    assert size(growth=0.5, years=2).targets[0].load < size().targets[0].load


def test_carbon_has_the_share_of_the_energy_and_equal_requests_equal_answers():
    target = size(carbon=0.4).targets[0]
    assert target.carbon == pytest.approx(target.energy * 0.4)
    assert size(carbon=0.4) == size(carbon=0.4)


def test_champion_of_power_must_predict_watts(capsys, tmp_path):
    with pytest.raises(UserError, match="must predict watts at idle and at full load"):
        perfcast.load_champion(project().folder, power=project().folder)
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("count,processor,chips\n40,Xeon Gold 6148,2\n")
    request = ["size", str(fleet), "--onto", "2 x Xeon Gold 6148", "--champion", str(project().folder)]
    assert main([*request, "--power", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert main([*request, "--power", str(power_folder())]) == 0
    shown = capsys.readouterr().out
    assert "watts from" in shown
    assert MEASURED in shown
