"""Imputation of a described machine: values, their origins, violated limits, donors, and the data they are from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, KNOWN, PLAIN, SUITES, is_possible, make_cells, predict, project, read_cells

from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.cells import ASSUMED, GIVEN, ORIGINS, Cells, EntityFacts
from perfcast.inference.champion import build_features
from perfcast.inference.donors import HotDeck, JointDeck
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_predictions import complete_machines
from perfcast.inference.parse import parse_batch
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Role, Table, Tag
from perfcast.uncertainty.in_domain import gower_distances
from perfcast.utils.errors import UserError


def only_row(cells):
    """Return the cells of one machine by column."""
    return cells.to_frame().iloc[0]


def test_facts_of_a_cpu_model_keep_given_values_and_those_of_an_unknown_one_are_its_family():
    named = EntityFacts(RULES.typical_values.read_entity_facts({}, ["xeon gold 6148"]))
    known = only_row(
        RULES.typical_values.fill_entity_facts(make_cells(cpu_model="xeon gold 6148", simd_bits=256.0), named)
    )
    expected = {"cpu_model_id": "xeon-gold-6148", "family": "Skylake-SP", "mem_channels_per_chip": 6, "simd_bits": 256}
    assert known[list(expected)].to_dict() == expected
    # of the table of CPU models, that of others has none
    assert known[["tdp_w", "max_sockets"]].tolist() == [150, 4]
    near = only_row(RULES.typical_values.fill_entity_facts(make_cells(cpu_model="xeon gold 6149"), named))
    assert near["family"] == "Skylake-SP"
    facts = project().champion.reference_data.facts_by_model
    unknown = only_row(RULES.typical_values.fill_entity_facts(make_cells(cpu_model="foo 99"), facts))
    assert unknown[["family", "tdp_w", "simd_bits", "cores_per_chip_of_cpu_model"]].isna().all()
    listed = project().standard.frame.dropna(subset=["tdp_w"]).iloc[0]
    assert (
        only_row(RULES.typical_values.fill_entity_facts(make_cells(cpu_model=listed["cpu_model"]), facts))["tdp_w"]
        == listed["tdp_w"]
    )


@pytest.mark.parametrize(
    ("cells", "implied"),
    [
        (
            {"chips": 2.0, "cores_per_chip_stated": 96.0, "isa": "x86", "dimm_count": 24.0, "dimm_gb": 64.0},
            {"cores_per_chip_of_cpu_model": 96, "cores_enabled_total": 192, "mem_total_gb": 1536, "arch": "x86_64"},
        ),
        ({"mem_rated_mts": 6400.0, "mem_max_mts_1dpc": 6000.0}, {"mem_eff_mts": 6000}),
        ({"dimm_count": 16.0, "dimm_gb": 64.0, "hbm_gb": 128.0}, {"mem_total_gb": 1152}),
        ({"dimm_count": 0.0, "hbm_gb": 128.0}, {"mem_total_gb": 128}),
        ({"dimm_count": 16.0, "mem_total_gb": 1152.0, "hbm_gb": 128.0}, {"dimm_gb": 64}),
    ],
)
def test_fill_implied_derives_cells(cells, implied):
    assert only_row(RULES.typical_values.fill_implied(make_cells(**cells)))[list(implied)].to_dict() == implied


def test_memory_rate_of_the_processor_limit_is_usual_and_not_implied():
    machine = make_cells(mem_max_mts_1dpc=6000.0, mem_channels_per_chip=12.0, chips=2.0)
    assert np.isnan(RULES.typical_values.fill_implied(machine)["mem_eff_mts"][0])
    usual = only_row(RULES.typical_values.fill_usual(machine, pd.Timestamp("2024-12-01")))
    assert usual[["mem_rated_mts", "dimm_count", "test_month"]].tolist() == [6000, 24, pd.Timestamp("2024-12-01")]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"cores": 24}, "cores.* 24 per chip is more than the 20 of Xeon Gold 6148 .machine 1.*orrect it"),
        ({"cores_enabled_total": 48}, "cores_enabled_total.* 24 per chip is more than the 20 of Xeon Gold"),
        ({"cores_enabled_total": 39}, "cores_enabled_total.* 39 in total cannot be shared equally"),
        ({"chips": 8}, "chips.* 8 is more than the 4 sockets"),
        (
            {"processor": "XeonGold6148", "sockets": 8, "chips": ""},
            "sockets.* 8 is more than the 4 sockets that XeonGo",
        ),
        ({"memory": "26 x 64 GB DDR4-2666"}, "memory.* 26 modules are more than 2 in each of the 12"),
        ({"memory": "4 x 64 GB DDR4-6400"}, "memory.* 6400 MT/s is no rate of DDR4, which has 1600 to 3600 MT/s"),
        ({"base_mhz": 4000, "turbo": 3000}, "base_mhz.* 4000 MHz is above the turbo clock of 3000 MHz"),
        ({"mem_total_gb": 100, "dimm_count": 2, "dimm_gb": 64}, "mem_total_gb.* is not 2 modules of 64 GiB"),
        ({"mem_running_mts": 3200, "mem_rated_mts": 2933}, "mem_running_mts.* above the rated 2933 MT/s"),
    ],
)
def test_impute_names_the_violated_field_as_typed(typed, message):
    champion = project().champion
    with pytest.raises(UserError, match=rf"^{message}"):
        complete_machines(parse_machines(read_machines({**KNOWN, **typed}), champion), champion)


def test_uneven_modules_are_a_note():
    champion = project().champion
    parsed = parse_machines(read_machines({**KNOWN, "memory": "3 x 64 GB DDR4-2666"}), champion)
    assert parsed.notes[1] == ("3 memory modules are not shared equally by 2 processors",)
    assert complete_machines(parsed, champion).frame["dimm_count"].tolist() == [3.0] * 4


def test_find_violations_accepts_most_measured_machines():
    """The generated results have the published ones' mistakes, so not all of them."""
    frame = project().standard.frame.head(100)
    assert sum(is_possible(frame.loc[[row]]) for row in frame.index) > 80


def test_hot_deck_fills_a_block_from_one_similar_result_of_the_columns_that_there_are():
    measured = project().champion.reference_data.measured
    block = next(block for block in RULES.typical_values.blocks if block.name == "compiler")
    names = ["compiler_vendor", "compiler_major_minor"]
    for absent in ((), ("oneapi", "isa")):
        columns = tuple(column for column in measured.columns if column.name not in absent)
        hot_deck = HotDeck(Table(measured.dataset, measured.frame.drop(columns=[*absent]), columns))
        whole = make_cells(suite="CINT2017rate", cpu_vendor="Intel")
        machine = Cells({name: whole[name] for name in whole if name not in absent}, whole.index)
        lent = only_row(hot_deck.fill(machine, block))
        alike = measured.frame[(measured.frame["suite"] == "CINT2017rate") & (measured.frame["cpu_vendor"] == "Intel")]
        assert (alike[names] == lent[names]).all(axis=1).any()
        assert lent[[name for name in block.columns if name not in absent]].notna().all()
    assert hot_deck.fill(machine, replace(block, columns=("oneapi",))) is machine
    gcc = make_cells(suite="CINT2017rate", cpu_vendor="Intel", compiler_vendor="GCC")
    assert only_row(HotDeck(measured).fill(gcc, block))["compiler_vendor"] == "GCC"


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


ASSUMABLE = ("compiler_vendor", "compiler_major_minor", "sw_avail", "os_name", "os_version", "kernel_series")


def draws(machine, champion=None):
    known = champion or project().champion
    return impute_machines(parse_machines(read_machines([machine]), known), known)


def deck(**changes):
    champion = project().champion
    return JointDeck(champion.reference_data.measured, replace(champion.rules.typical_values.joint, **changes))


def test_what_is_not_given_is_as_measured_machines_have_it():
    drawn = draws({**KNOWN, "suite": "CINT2017rate"})
    frame, measured = drawn.completed.frame, project().champion.reference_data.measured.frame
    assert len(frame) == 1
    assumed = [name for name in ASSUMABLE if drawn.completed.origins[name].iloc[0] == ASSUMED]
    assert len(assumed) > 3
    assert all(frame[name].iloc[0] in set(measured[name]) for name in assumed)


def test_given_cells_are_kept_and_the_typical_machine_is_possible():
    drawn = draws({**KNOWN, "memory": "12 x 32 GB DDR4-2933", "compiler": "AOCC 4.0", "suite": "CFP2017rate"})
    frame = drawn.completed.frame
    assert set(frame["dimm_gb"]) == {32}
    assert set(frame["dimm_count"]) == {12}
    assert set(frame["compiler_vendor"]) == {"AOCC"}
    assert (drawn.completed.origins["dimm_gb"] == GIVEN).all()
    assert all(is_possible(frame.iloc[[place]]) for place in range(len(frame)))


def test_typical_machines_repeat_exactly_and_do_not_depend_on_the_batch():
    first, again = draws(KNOWN), draws(KNOWN)
    pd.testing.assert_frame_equal(first.completed.frame, again.completed.frame)
    champion = project().champion
    both = impute_machines(
        parse_machines(read_machines([{"processor": "epyc 7601", "chips": 1}, KNOWN]), champion), champion
    )
    last = both.completed.frame[both.completed.frame.index == both.completed.frame.index[-1]]
    pd.testing.assert_frame_equal(last.reset_index(drop=True), first.completed.frame.reset_index(drop=True))


def test_saved_typical_machines_are_those_that_are_made():
    champion = project().champion
    assert champion.saved_typical is not None
    reading, making = replace(champion), replace(champion, saved_typical=None)
    entities = sorted(champion.measured_entities)
    machines = [{"cpu_model": name, "chips": 1 + place % 2} for place, name in enumerate(entities)]
    machines.append({"processor": "Xeon Gold 9999", "cores": 24, "clock": 2500, "family": "Cascade Lake-SP"})
    saved, made = (
        impute_machines(parse_batch(read_machines(machines), each), each).completed for each in (reading, making)
    )
    pd.testing.assert_frame_equal(saved.frame, made.frame)
    pd.testing.assert_frame_equal(saved.origins, made.origins)
    # only the machine of an unknown entity is made by the champion with saved ones
    assert len(reading.typical_machines.made) < len(making.typical_machines.made)


PLAIN_FIELDS = ("memory", "os", "compiler", "storage", "vendor")


@pytest.mark.parametrize("seed", range(40))
def test_what_was_assumed_typed_back_changes_no_answer(seed):
    """Neither all of it nor a part of it, for one task and for all, on measured and on unknown CPU models."""
    champion, random = project().champion, np.random.default_rng(seed)
    names = sorted(set(champion.reference_data.measured.frame["cpu_model"].astype(str)))
    machine = {"cpu_model": str(random.choice(names)), "chips": 1}
    if seed % 3 == 0:
        machine = {"processor": "Xeon Gold 9999", "cores": 24, "clock": 2500, "family": "Cascade Lake-SP", "chips": 2}
    if seed % 2:
        machine["suite"] = str(random.choice(champion.tasks))
    options = replace(PLAIN, assume=True, explain=True)
    (before,) = predict(machine, options=options).machines
    of_task = {each.task: each for each in before.estimates}
    assumed = {value.column: value.value for value in before.values if value.origin == ASSUMED}
    common = {name: cell for name, cell in assumed.items() if name not in champion.rules.typical_values.joint.software}
    chosen = common if len(of_task) > 1 else assumed
    for share in (1.0, 0.5, 0.2):
        typed = {name: cell for name, cell in chosen.items() if random.random() <= share}
        (after,) = predict({**machine, **typed}, options=options).machines
        for each in after.estimates:
            known = of_task[each.task]
            assert (each.median, each.low, each.high) == (known.median, known.low, known.high), typed
            assert each.trust == known.trust


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


def filled(joint, rows, column, **cells):
    """Return a column of described machines without it, as others, rows of the deck, give it."""
    machine = rows.assign(**{column: np.nan, **cells}).reset_index(drop=True)
    return joint.adopt(read_cells(machine), read_cells(rows.reset_index(drop=True)))[column]


def test_modules_grow_with_the_channels_and_a_rate_is_of_its_generation():
    joint = deck(per_unit={"dimm_count": ("chips",)})
    rows = joint.frame[joint.frame["dimm_count"].notna() & (joint.frame["chips"] == 2)].head(1)
    assert filled(joint, rows, "dimm_count", chips=4.0)[0] == 2 * rows["dimm_count"].iloc[0]
    joint = deck()
    rows = joint.frame[joint.frame["mem_rated_mts"].notna() & joint.frame["ddr_gen"].notna()].head(1)
    assert not np.isnan(filled(joint, rows, "mem_rated_mts")[0])
    assert np.isnan(filled(joint, rows, "mem_rated_mts", ddr_gen=9.0)[0])


def test_a_donor_at_its_largest_value_gives_that_of_the_machine():
    joint = deck(at_most={"mem_rated_mts": ("mem_max_mts_1dpc",)})
    known = joint.frame[joint.frame["mem_max_mts_1dpc"].notna() & joint.frame["ddr_gen"].notna()]
    fast = known[known["mem_rated_mts"] >= known["mem_max_mts_1dpc"]].head(1)
    assert filled(joint, fast, "mem_rated_mts", mem_max_mts_1dpc=9000.0)[0] == 9000
    measured = project().champion.reference_data.measured
    slow = measured.frame.assign(mem_rated_mts=measured.frame["mem_max_mts_1dpc"] - 100)
    slower = JointDeck(replace(measured, frame=slow), joint.rules)
    expected = fast["mem_max_mts_1dpc"].iloc[0] - 100
    assert filled(slower, slower.frame.loc[fast.index], "mem_rated_mts", mem_max_mts_1dpc=9000.0)[0] == expected
    limits = {"mem_max_mts_1dpc": 6400.0, "mem_mrdimm_mts": 8800.0, "mem_rated_mts": 12800.0}
    rules = project().champion.rules.typical_values.joint
    joint = JointDeck(replace(measured, frame=measured.frame.assign(**limits)), rules)
    row = joint.frame[joint.frame["ddr_gen"].notna()].head(1)
    for multiplexed, fastest in ((8000.0, 8000), (np.nan, 6400)):
        assert filled(joint, row, "mem_rated_mts", mem_mrdimm_mts=multiplexed)[0] == fastest


def test_threads_per_core_are_those_that_the_cpu_model_runs():
    joint = deck()
    for family, threads, machine, expected in (
        ("Altra", 1, "Granite Rapids-SP", 2),
        ("Genoa", 2, "Sierra Forest", 1),
        ("Genoa", 1, "Granite Rapids-SP", 1),
    ):
        donor = joint.frame[joint.frame["family"] == family].head(1).assign(threads_per_core=float(threads))
        lent = deck()
        lent.frame.loc[donor.index, "threads_per_core"] = float(threads)
        assert filled(lent, donor, "threads_per_core", family=machine)[0] == expected


def test_every_cpu_model_runs_the_newest_software_of_its_vendor_on_the_asked_day():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    by_release = frame[frame["cpu_vendor"] == "Intel"].groupby("sw_avail")["compiler_major_minor"].agg(set)
    oldest = frame[frame["cpu_vendor"] == "Intel"].sort_values("published_month")["cpu_model"].iloc[0]
    machine = {"processor": oldest, "chips": 2, "suite": "CINT2017rate"}
    released = {}
    for year in (2018, 2022):
        parsed = parse_machines(read_machines([machine]), champion)
        drawn = impute_machines(parsed, champion, pd.Timestamp(year, 6, 1)).completed.frame
        released[year] = drawn["sw_avail"].median()
        assert set(drawn["test_month"]) == {min(pd.Timestamp(year, 6, 1), frame["published_month"].max())}
        assert set(drawn["compiler_major_minor"]) <= set.union(*by_release)
    assert released[2018] < released[2022]


def test_find_nearest_sorts_by_distance_and_then_newest_first():
    champion = project().champion
    index = champion.neighbor_index
    table = build_features("spec_cpu2017", project().standard.frame.iloc[::40], project().standard.columns, FEATURES)
    tasks = table.frame["suite"]
    spans = list(index.calibrated.in_domain.parts())
    weights = index.calibrated.calibration.weights
    frame = champion.reference_data.measured.frame
    cpu_models = frame["cpu_model"].to_numpy()
    table_of_all = build_features("spec_cpu2017", frame, champion.reference_data.measured.columns, FEATURES)
    measured = index.calibrated.in_domain.encode(table_of_all.frame).astype(np.float32)
    for count in (1, 5, 10_000):
        nearest = index.find_nearest(table.frame, tasks, count)
        encoded = index.calibrated.in_domain.encode(table.frame).astype(np.float32)
        described = zip(encoded, tasks, table.frame["cpu_model"], nearest, strict=True)
        for row, task, cpu_model, neighbors in described:
            rows = np.flatnonzero(index.tasks == task)
            others = measured[rows]
            far = sum(
                max(weights.get(group, 0.0), index.calibrated.calibration.base)
                * gower_distances(row[span], others[:, span], numeric)
                for group, span, numeric in spans
            )
            far += index.calibrated.calibration.base * (cpu_models[rows] != cpu_model)
            expected = sorted(zip(far, -rows, strict=True))[:count]
            assert neighbors == [(-row, pytest.approx(distance)) for distance, row in expected]


def test_find_common_values_of_a_cpu_model():
    reference_data = project().champion.reference_data
    frame = reference_data.measured.frame
    group = next(column.group for column in reference_data.measured.columns if column.name == "cpu_model")
    names = [name for name in reference_data.measured.select(role=Role.FEATURE, group=group) if name != "cpu_model"]
    rows = frame.groupby("cpu_model")[names]
    expected = rows.first().where(rows.nunique() == 1)
    for cpu_model in expected.index:
        assert reference_data.find_common_values(Tag.ENTITY, cpu_model) == expected.loc[cpu_model].dropna().to_dict()
    assert reference_data.find_common_values(Tag.ENTITY, "no such model") == {}


def test_gather_keeps_the_newest_result_of_every_output(monkeypatch):
    standard = project().standard
    whole = ReferenceData.gather(standard, project().raw, FEATURES)
    assert len(whole.measured.frame) == len(standard.frame)
    frame = whole.measured.frame
    outputs = [frame["cpu_model"].astype("str"), frame["suite"].astype("str")]
    count = frame.groupby(outputs).ngroups
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", count)
    reduced = ReferenceData.gather(standard, project().raw, FEATURES)
    newest_rows = reduced.measured.frame
    assert len(newest_rows) == count
    assert newest_rows.index.equals(pd.RangeIndex(count))
    newest = frame.groupby(outputs)["published_month"].max()
    newest_of_rows = newest_rows.set_index(
        [newest_rows["cpu_model"].astype("str"), newest_rows["suite"].astype("str")]
    )["published_month"]
    pd.testing.assert_series_equal(newest_of_rows.sort_index(), newest.sort_index(), check_names=False)
    # order and cells are those of the whole table
    again = frame[frame["result_id"].isin(newest_rows["result_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(newest_rows, again)


def test_gather_keeps_every_task_within_the_limit(monkeypatch):
    monkeypatch.setattr("perfcast.inference.reference_data.MAX_RESULTS", 8)
    measured = ReferenceData.gather(project().standard, project().raw, FEATURES).measured.frame
    assert measured["suite"].astype("str").value_counts().to_dict() == dict.fromkeys(SUITES, 2)


def test_memory_that_is_typed_back_changes_no_software():
    champion = project().champion
    software = champion.rules.typical_values.joint.software
    for speed in (1866, 2666, 3200):
        drawn = [draws({**KNOWN, "memory": f"8 x 64 GB{text}"}, champion) for text in ("", f" DDR4-{speed}")]
        runs = [list_software(each, [name for name in software if name in each.completed.cells]) for each in drawn]
        assert runs[0] == runs[1]


def list_software(drawn, names):
    frame = drawn.completed.frame[names].astype(str).assign(owner=drawn.owners, weight=drawn.weights)
    return frame.groupby(["owner", *names])["weight"].sum().round(9).to_dict()
