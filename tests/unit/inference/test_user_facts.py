"""Facts of a user in the reference data of a champion."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd
import pytest

from perfcast.data.processors.facts import Fact
from perfcast.inference.user_facts import add_user_facts

DAY = pd.Timestamp("2026-11-23")


@dataclass(frozen=True)
class _ReferenceData:
    cpu_facts: pd.DataFrame
    user_facts: tuple[Fact, ...] = ()


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
    listed = add_user_facts(_Champion(), facts).reference_data.cpu_facts  # type: ignore[type-var, arg-type]
    row = listed.loc["foo 1"]
    assert (row["family"], row["tdp_w"], row["mem_channels_per_chip"]) == ("Turin", 350, 12)
    assert row["cores_per_chip_of_cpu_model"] == 64
    assert row["launch_quarter"] == pd.Timestamp("2026-10-01")
    assert listed["tdp_w"].dtype == "float64"


def test_a_listed_model_keeps_what_is_not_stated() -> None:
    listed = add_user_facts(_Champion(), [state("epyc 9755", "tdp_w", "505")]).reference_data.cpu_facts  # type: ignore[type-var, arg-type]
    assert listed.loc["epyc 9755", ["tdp_w", "mem_channels_per_chip"]].tolist() == [505, 12]
    assert len(listed) == 1


@pytest.mark.parametrize("facts", [[], [state("gemm 1", "tdp_w", "300")]])
def test_machines_without_facts_of_processors_stay_as_they_are(facts: list[Fact]) -> None:
    champion = _Champion(_ReferenceData(pd.DataFrame()))
    assert add_user_facts(champion, facts) is champion  # type: ignore[arg-type, comparison-overlap]
