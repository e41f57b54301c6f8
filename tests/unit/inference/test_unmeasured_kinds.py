"""Kinds of machines that were never measured: an answer says so, and efficient cores do not count as whole ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from champion_project import PLAIN, predict, project

from perfcast.decisions.display import format_predictions
from perfcast.domains.servers.processors.facts import read_table
from perfcast.domains.servers.server_rules import _HYBRID
from perfcast.inference.cells import Cells
from perfcast.inference.rules import find_rules

RULES = find_rules("spec_cpu2017")
CPU_MODELS = [(row["cpu_model"], row["family"]) for row in read_table("cpu_models.csv")]


def kinds_of(cpu_model, family, vendor="Intel"):
    return set(RULES.list_kinds({"cpu_vendor": vendor, "family": family, "cpu_model": cpu_model}))


@pytest.mark.parametrize(
    ("cpu_model", "family", "is_hybrid"),
    [
        ("core ultra 9 285k", "Arrow Lake", True),
        ("core i9-14900k", "Raptor Lake", True),
        ("core i5-12600k", "Alder Lake", True),
        ("core i5-12500h", "Alder Lake", True),
        ("core i3-1215u", "Alder Lake", True),
        ("core i5-12400f", "Alder Lake", False),
        ("core i5-12500te", "Alder Lake", False),
        ("core i3-13100", "Raptor Lake", False),
        ("pentium gold g7400", "Alder Lake", False),
        ("xeon e-2488", "Raptor Lake E", False),
        ("xeon 6780e", "Sierra Forest", False),
    ],
)
def test_hybrid_processors_are_told_from_their_family_and_name(cpu_model, family, is_hybrid):
    assert (_HYBRID in kinds_of(cpu_model, family)) == is_hybrid


def test_every_processor_of_the_facts_names_its_kinds_that_were_never_measured():
    champion = project().champion
    measured = champion.reference_data.measured.frame
    assert len(CPU_MODELS) > 250
    machines = [{"processor": name, "chips": 1, "suite": "CINT2017rate"} for name, _ in CPU_MODELS]
    answer = predict(machines, champion, PLAIN)
    text = " ".join(format_predictions(answer).split())
    frame = answer.to_frame().set_index("line")
    for prediction, (_, family) in zip(answer, CPU_MODELS, strict=True):
        notes = [note for note in prediction.notes if note.startswith("never measured: ")]
        assert bool(notes) == (family not in set(measured["family"]))
        for note in notes:
            assert f"family {family}" in note
            assert note in text
            assert note in frame.loc[prediction.line, "notes"]


def test_an_efficient_core_counts_less_in_rate_suites_and_as_a_whole_one_at_the_upper_end():
    champion = project().champion
    (with_deduction,) = predict({"processor": "Core Ultra 9 285K", "chips": 1}, champion, PLAIN).machines
    known = replace(champion)
    known.__dict__["measured_kinds"] = frozenset({_HYBRID})
    (without,) = predict({"processor": "Core Ultra 9 285K", "chips": 1}, known, PLAIN).machines
    for less, whole in zip(with_deduction.estimates, without.estimates, strict=True):
        factor = 1.5 if less.task.endswith("rate") else 1.0
        assert whole.median / less.median == pytest.approx(factor)
        assert whole.low / less.low == pytest.approx(factor)
        assert less.high == pytest.approx(whole.high)


def test_nothing_is_deducted_where_a_hybrid_was_measured_or_from_other_datasets():
    cells = {"cpu_model": np.array(["core ultra 9 285k"]), "family": np.array(["Arrow Lake"], dtype=object)}
    cells = Cells({**cells, "suite": np.array(["CFP2017rate"])}, np.array([0]))
    assert RULES.find_deductions(cells, frozenset())[0] == pytest.approx(np.log(1.5))
    assert not RULES.find_deductions(cells, frozenset({_HYBRID})).any()
    assert not find_rules("host_gemm").find_deductions(cells, frozenset()).any()
