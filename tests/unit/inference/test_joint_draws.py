"""Joint draws: whole set-ups of measured results, the same every time, with the given cells kept."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import KNOWN, is_possible, predict, project, read_cells

from perfcast.inference import parse_machines, read_machines
from perfcast.inference.cells import ASSUMED, GIVEN
from perfcast.inference.donors import JointDeck
from perfcast.inference.draws import impute_draws

SOFTWARE = ["compiler_vendor", "compiler_major_minor", "os_name", "os_version"]


def draws(machine, champion=None):
    known = champion or project().champion
    return impute_draws(parse_machines(read_machines([machine]), known), known)


def deck(**changes):
    champion = project().champion
    return JointDeck(champion.reference_data.measured, replace(champion.rules.joint, **changes))


def test_what_is_not_given_comes_jointly_from_a_measured_result():
    drawn = draws({**KNOWN, "suite": "CINT2017rate"})
    frame = drawn.completed.frame
    assert len(frame) > 1
    measured = project().champion.reference_data.measured.frame
    pairs = set(map(tuple, measured[SOFTWARE].astype(object).itertuples(index=False)))
    assumed = frame[(drawn.completed.origins[SOFTWARE] == ASSUMED).all(axis=1).to_numpy()]
    assert len(assumed) > 1
    assert set(map(tuple, assumed[SOFTWARE].astype(object).itertuples(index=False))) <= pairs
    assert drawn.weights.sum() == pytest.approx(1)


def test_given_cells_are_kept_and_every_draw_is_possible():
    drawn = draws({**KNOWN, "memory": "12 x 32 GB DDR4-2933", "compiler": "AOCC 4.0", "suite": "CFP2017rate"})
    frame = drawn.completed.frame
    assert set(frame["dimm_gb"]) == {32}
    assert set(frame["dimm_count"]) == {12}
    assert set(frame["compiler_vendor"]) == {"AOCC"}
    assert (drawn.completed.origins["dimm_gb"] == GIVEN).all()
    assert all(is_possible(frame.iloc[[place]]) for place in range(len(frame)))


def test_draws_repeat_exactly_and_do_not_depend_on_the_batch():
    first, again = draws(KNOWN), draws(KNOWN)
    pd.testing.assert_frame_equal(first.completed.frame, again.completed.frame)
    champion = project().champion
    both = impute_draws(
        parse_machines(read_machines([{"processor": "epyc 7601", "chips": 1}, KNOWN]), champion), champion
    )
    last = both.completed.frame[both.completed.frame.index == both.completed.frame.index[-1]]
    pd.testing.assert_frame_equal(last.reset_index(drop=True), first.completed.frame.reset_index(drop=True))


def test_donors_of_the_same_cpu_model_come_first_and_the_newest_of_them():
    measured = project().champion.reference_data.measured.frame
    counts = measured.groupby(["cpu_model", "suite"], observed=True)["published_month"].agg(["size", "nunique"])
    name, suite = counts[(counts["size"] >= 3) & (counts["nunique"] >= 2)].index[0]
    machine = measured.head(1).reset_index(drop=True).astype(object)
    machine.loc[0, :] = np.nan
    machine.loc[0, ["cpu_model", "suite"]] = name, suite
    machine = machine.astype(measured.dtypes.to_dict())
    near = deck(penalties={"cpu_model": 50.0}, years=1000.0)
    donor_rows = near.draw(read_cells(machine))[0]
    assert set(near.frame.iloc[donor_rows]["cpu_model"]) == {name}
    newest = deck(penalties={"cpu_model": 50.0}, years=0.01)
    donor_rows = newest.draw(read_cells(machine))[0]
    of_model = measured[(measured["cpu_model"] == name) & (measured["suite"] == suite)]
    assert set(newest.frame.iloc[donor_rows]["published_month"]) == {of_model["published_month"].max()}


def test_modules_grow_with_the_channels():
    joint = deck(per_unit={"dimm_count": ("chips",)})
    rows = joint.frame[joint.frame["dimm_count"].notna() & (joint.frame["chips"] == 2)].head(1)
    machine = rows.assign(dimm_count=np.nan, chips=4.0).reset_index(drop=True)
    filled = joint.fill(read_cells(machine), rows.index.to_numpy())
    assert filled["dimm_count"][0] == 2 * rows["dimm_count"].iloc[0]


def test_the_rate_of_memory_of_another_generation_is_not_taken():
    joint = deck()
    rows = joint.frame[joint.frame["mem_rated_mts"].notna() & joint.frame["ddr_gen"].notna()].head(1)
    machine = rows.assign(mem_rated_mts=np.nan).reset_index(drop=True)
    assert not np.isnan(joint.fill(read_cells(machine), rows.index.to_numpy())["mem_rated_mts"]).any()
    other = read_cells(machine.assign(ddr_gen=9.0))
    assert np.isnan(joint.fill(other, rows.index.to_numpy())["mem_rated_mts"]).all()


def test_a_donor_at_its_largest_value_gives_that_of_the_machine():
    joint = deck(at_most={"mem_rated_mts": ("mem_max_mts_1dpc",)})
    known = joint.frame[joint.frame["mem_max_mts_1dpc"].notna() & joint.frame["ddr_gen"].notna()]
    fast = known[known["mem_rated_mts"] >= known["mem_max_mts_1dpc"]].head(1)
    machine = fast.assign(mem_rated_mts=np.nan, mem_max_mts_1dpc=9000.0).reset_index(drop=True)
    cells, donor_rows = read_cells(machine), fast.index.to_numpy()
    assert joint.fill(cells, donor_rows)["mem_rated_mts"][0] == 9000
    measured, rules = project().champion.reference_data.measured, joint.rules
    slow = measured.frame.assign(mem_rated_mts=measured.frame["mem_max_mts_1dpc"] - 100)
    slower = JointDeck(replace(measured, frame=slow), rules)
    assert slower.fill(cells, donor_rows)["mem_rated_mts"][0] == fast["mem_max_mts_1dpc"].iloc[0] - 100


@pytest.mark.parametrize(("multiplexed", "expected"), [(8000.0, 8000), (np.nan, 6400)])
def test_a_donor_with_multiplexed_modules_gives_the_fastest_that_the_machine_takes(multiplexed, expected):
    measured, rules = project().champion.reference_data.measured, project().champion.rules.joint
    limits = {"mem_max_mts_1dpc": 6400.0, "mem_mrdimm_mts": 8800.0, "mem_rated_mts": 12800.0}
    joint = JointDeck(replace(measured, frame=measured.frame.assign(**limits)), rules)
    row = joint.frame[joint.frame["ddr_gen"].notna()].head(1)
    machine = row.assign(mem_rated_mts=np.nan, mem_mrdimm_mts=multiplexed).reset_index(drop=True)
    assert joint.fill(read_cells(machine), row.index.to_numpy())["mem_rated_mts"][0] == expected


def test_a_new_cpu_model_runs_the_newest_software():
    champion = project().champion
    measured = champion.reference_data.measured
    last = measured.frame["published_month"].max()
    old = np.arange(len(measured.frame)) % 2 == 0
    frame = measured.frame.assign(sw_avail=last - pd.to_timedelta(np.where(old, 1500, 0), unit="D"))
    machine = measured.frame.head(1).reset_index(drop=True).astype(object)
    machine.loc[0, :] = np.nan
    machine.loc[0, ["cpu_model", "suite", "launch_quarter"]] = "xeon new", "CINT2017rate", last
    shares = {}
    for launch in (last, last - pd.DateOffset(years=3)):
        machine["launch_quarter"] = launch
        joint = JointDeck(replace(measured, frame=frame), champion.rules.joint)
        donor_rows = joint.draw(read_cells(machine.astype(measured.frame.dtypes.to_dict())))[0]
        shares[launch] = (joint.frame["sw_avail"].iloc[donor_rows] == last).mean()
    assert shares[last] == 1
    assert min(shares.values()) < 1


def test_the_prediction_is_the_median_over_draws():
    champion = project().champion
    machine = {**KNOWN, "suite": "CINT2017rate"}
    drawn = draws(machine)
    scores = np.exp(champion.predict_logs(drawn.completed.cells)[:, 0])
    (estimate,) = predict(machine, options=replace_options()).machines[0].estimates
    below, above = (
        drawn.weights[scores < estimate.median * (1 - 1e-9)],
        drawn.weights[scores > estimate.median * (1 + 1e-9)],
    )
    assert below.sum() <= 0.5 + 1e-9
    assert above.sum() <= 0.5 + 1e-9
    assert estimate.low < scores.min() or estimate.low < estimate.median
    assert estimate.high > estimate.median


def replace_options():
    from champion_project import PLAIN

    return replace(PLAIN, assume=True)
