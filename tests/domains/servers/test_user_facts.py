"""Facts of a user in the reference data of a champion."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
from champion_project import KNOWN, predict, project

from perfcast.cli.main import main
from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.processors.user_facts import add_user_facts

DAY = pd.Timestamp("2026-11-23")
MACHINE = ("--processor", "Xeon Gold 6148", "--chips", "2")
DOORS = {
    "predict": (*MACHINE, "--brief"),
    "predict as CSV": (*MACHINE, "--csv"),
    "rank": (*MACHINE, "--vary", "cores=16,20"),
    "what-if": (*MACHINE, "--vary", "cores=16,20"),
    "similar": MACHINE,
    "compare": ("2 x Xeon Gold 6148", "1 x Xeon Gold 6148"),
}
FOREIGN = "fact_id,text\n1,hello\n"
OWN = "cpu_model,family,tdp_w,known_from,source,quality\nXeon Gold 6148,,30,2026-11-01,mine,1\n"


@dataclass(frozen=True)
class _ReferenceData:
    entity_facts: pd.DataFrame
    user_facts: tuple[Fact, ...] = ()
    user_entities: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Champion:
    reference_data: _ReferenceData = field(
        default_factory=lambda: _ReferenceData(
            pd.DataFrame(
                {
                    "family": ["Turin"],
                    "tdp_w": [500.0],
                    "mem_channels_per_chip": [12.0],
                    "cores_per_chip_of_cpu_model": [128.0],
                    "launch_quarter": pd.to_datetime(["2024-10-01"]),
                },
                index=pd.Index(["epyc 9755"], name="cpu_model"),
            )
        )
    )


def state(key: str, name: str, value: str, family: str = "") -> Fact:
    return Fact(key, family, name, value, "", DAY, "list", 1)


def test_a_new_model_has_the_facts_of_its_family_and_those_stated() -> None:
    facts = [state("foo 1", "tdp_w", "350", "Turin"), state("foo 1", "cores_per_chip", "64", "Turin")]
    listed = add_user_facts(_Champion(), facts).reference_data.entity_facts  # type: ignore[type-var, arg-type]
    row = listed.loc["foo 1"]
    assert (row["family"], row["tdp_w"], row["mem_channels_per_chip"]) == ("Turin", 350, 12)
    assert row["cores_per_chip_of_cpu_model"] == 64
    assert row["launch_quarter"] == pd.Timestamp("2026-10-01")
    assert listed["tdp_w"].dtype == "float64"


def test_a_listed_model_keeps_what_is_not_stated() -> None:
    listed = add_user_facts(_Champion(), [state("epyc 9755", "tdp_w", "505")]).reference_data.entity_facts  # type: ignore[type-var, arg-type]
    assert listed.loc["epyc 9755", ["tdp_w", "mem_channels_per_chip"]].tolist() == [505, 12]
    assert len(listed) == 1


@pytest.mark.parametrize("facts", [[], [state("gemm 1", "tdp_w", "300")]])
def test_machines_without_facts_of_processors_stay_as_they_are(facts: list[Fact]) -> None:
    champion = _Champion(_ReferenceData(pd.DataFrame()))
    assert add_user_facts(champion, facts) is champion  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("content", [FOREIGN, OWN], ids=["foreign", "own"])
def test_a_table_of_facts_counts_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], door: str, content: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [door.split(maxsplit=1)[0], "--champion", str(project().folder), *DOORS[door]]
    assert main(command) == 0
    plain = capsys.readouterr()
    (tmp_path / "facts.csv").write_text(content)
    assert main(command) == 0
    assert capsys.readouterr() == plain
    note = "facts.csv: 1 CPU model of yours\n"
    if content == OWN:
        assert main([*command, "--facts", "facts.csv"]) == 0
        assert note in capsys.readouterr().err
    else:
        assert main([*command, "--facts", "facts.csv"]) == 2
        assert "'fact_id'" in capsys.readouterr().err
    assert note not in plain.err


def test_answers_of_every_form_say_that_facts_are_the_users() -> None:
    champion = add_user_facts(project().champion, [state("xeon gold 6148", "tdp_w", "30")])
    note = "facts of xeon gold 6148 are from your table"
    assert note in predict(KNOWN, champion).machines[0].notes
