"""Basis of answers: dates, errors, checks, and the example of a measurement agrees with --measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from champion_project import KNOWN, SUITES, TITLES, predict, project

import perfcast
from perfcast.decisions.display import format_basis
from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.server_rules import SPEC_CPU2017
from perfcast.inference.options import make_options
from perfcast.inference.prediction import MEASURED_FACTOR
from perfcast.uncertainty.levels import ErrorLevels, KnownErrors


@pytest.fixture(scope="module")
def basis():
    return predict(KNOWN, options=make_options(when="2025-03")).machines[0].basis


def test_basis_names_the_newest_result_and_errors_that_grow_with_the_level(basis):
    months = project().standard.frame["published_month"]
    assert basis.trained_until == f"{months.max():%Y-%m}"
    assert basis.measured_results == len(project().champion.reference_data.measured.frame)
    assert [error.task for error in basis.errors] == SUITES
    assert all(0 < error.median < error.p90 for error in basis.errors)


def test_facts_have_day_and_source(basis):
    assert basis.facts
    for source in basis.facts:
        assert source.subject in ("xeon gold 6148", "Skylake-SP")
        assert pd.Timestamp(source.known_from) < pd.Timestamp("2018-01-01")
        assert source.source and source.facts
    assert any("simd_bits 512 bit" in source.facts for source in basis.facts)


def test_facts_of_models_have_the_day_of_the_launch_and_facts_of_a_user_come_first():
    cells = {"cpu_model": "xeon gold 6148", "family": "Skylake-SP"}

    def find(user_facts=()):
        sources = SPEC_CPU2017.presentation.list_fact_sources(cells, user_facts)
        return next(source for source in sources if any(fact.startswith("tdp_w") for fact in source.facts))

    listed = find()
    # of the launch quarter, the last day
    assert (listed.known_from, "tdp_w 150 W" in listed.facts) == ("2017-09-30", True)
    mine = Fact("xeon gold 6148", "", "tdp_w", "140", "W", pd.Timestamp("2017-08-01"), "data sheet", 1)
    basis = find((mine,))
    assert (basis.known_from, basis.source, basis.facts) == ("2017-08-01", "data sheet", ("tdp_w 140 W",))


def test_measured_result_moves_the_others_as_the_basis_tells():
    champion = perfcast.load_champion(project().folder)
    # without published results, which another suite would not move it away from
    machine = {**KNOWN, "memory": "4 x 8 GB DDR4-2133", "os": "SLES 15", "compiler": "Intel C++ 19.1"}
    answer = champion.predict(machine, when="2025-03").machines[0]
    basis, before = answer.basis, {each.task: each for each in answer.estimates}
    measured = [
        {**machine, "suite": basis.measured_task, "score": MEASURED_FACTOR * before[basis.measured_task].median}
    ]
    after = {
        each.task: each for each in champion.predict(machine, when="2025-03", measured=measured).machines[0].estimates
    }
    assert {move.task for move in basis.moves} == set(TITLES) - {basis.measured_task}
    for move in basis.moves:
        assert after[move.task].user_factor == pytest.approx(move.factor, rel=1e-3)
        widths = [np.log(each[move.task].high / each[move.task].low) for each in (before, after)]
        assert widths[1] / widths[0] == pytest.approx(move.width, rel=1e-3)


def test_check_is_a_run_with_the_copies_of_the_machine():
    cells = {"cores_enabled_total": 40.0, "threads_per_core": 2.0, "os_name": "SLES", "os_version": "15"}
    check = SPEC_CPU2017.presentation.describe_check("CINT2017rate", {**cells, "base_ptr": "64"})
    assert check.command == "runcpu --config=perfcast --tune=base --reportable --copies=80 intrate"
    assert "copies = 80" in check.configuration
    speed = SPEC_CPU2017.presentation.describe_check(
        "CFP2017speed", {"cores_enabled_total": 40.0, "threads_per_core": np.nan}
    )
    assert speed.command.endswith("--threads=40 fpspeed")
    assert "copies" not in SPEC_CPU2017.presentation.describe_check("CINT2017rate", {}).command
    assert SPEC_CPU2017.presentation.describe_check("CINT2006rate", cells) is None


def test_text_has_basis_and_check(basis):
    text = "\n".join(format_basis(basis))
    for words in ("measured results up to", "errors in backtests", "public from 2017", "runcpu", "--measured"):
        assert words in text
    assert predict(KNOWN).machines[0].basis is None and format_basis(None) == [], "without explanations"


def test_assumptions_are_ranked_by_what_they_change_and_go_when_they_are_stated():
    def rank(machine):
        return predict(machine, options=make_options(when="2025-03")).machines[0].basis.assumptions

    machine = {"processor": "EPYC 9654", "chips": 2}
    ranked = rank(machine)
    assert [each.spread for each in ranked] == sorted((each.spread for each in ranked), reverse=True)
    assert ranked[0].spread > 0
    memory = next(each for each in ranked if each.field == "memory")
    assert "dimm_count" in memory.columns
    stated = {each.field: each for each in rank({**machine, "memory": "24 x 32 GB DDR5-4800"})}
    assert "dimm_count" not in getattr(stated.get("memory"), "columns", ())
    values = predict(machine, options=make_options(when="2025-03")).machines[0].values
    assert {each.origin for each in values if each.column in memory.columns} == {"assumed"}


def test_uncorrelated_errors_have_no_moves():
    champion = project().champion
    levels, known = ErrorLevels(), champion.calibrated.known
    levels.noise, levels.variances = known.levels.noise, dict.fromkeys(known.levels.variances, 1e-12)
    uncorrelated = KnownErrors(levels, known.errors, known.rows)
    alone = replace(champion, calibrated=replace(champion.calibrated, known=uncorrelated))
    unmoved = predict(KNOWN, alone, make_options(when="2025-03")).machines[0].basis
    assert (unmoved.measured_task, unmoved.moves) == ("", ())
