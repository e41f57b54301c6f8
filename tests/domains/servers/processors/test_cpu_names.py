"""Processor names: one key per part however it was typed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key
from perfcast.domains.servers.testing.generated_rows import CPU_MODELS

SETTINGS = settings(max_examples=200, deadline=None)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Intel Xeon Platinum 8592+", "Intel Xeon Platinum 8592V"),
        ("Intel Xeon Gold 6438M", "Intel Xeon Gold 6438Y+"),
        ("Intel Xeon E5-2620", "Intel Xeon E5-2620 v2"),
        ("AMD EPYC 7543", "AMD EPYC 7543P"),
        ("Intel Xeon Platinum 8568+", "Intel Xeon Platinum 8568Y+"),
    ],
)
def test_different_parts_keep_different_keys(first: str, other: str) -> None:
    assert cpu_model_key(first) != cpu_model_key(other)


@SETTINGS
@given(
    st.sampled_from(CPU_MODELS),
    st.sampled_from(["{}", "  {} ", "{} CPU @ 2.50GHz", "{} Processor", "{} 16-Core Processor", "{} (R)", "{} [B0]"]),
    st.sampled_from([str.upper, str.lower, str.title, str]),
    st.integers(1, 4),
)
def test_typing_does_not_change_the_key(part, dress, case, blanks) -> None:
    typed = dress.format(case(part.name)).replace(" ", " " * blanks)
    assert cpu_model_key(typed) == part.key


@SETTINGS
@given(st.text(max_size=60) | st.text("Intel(R)TM@ 2.5GHzvCPUcore+-16[]", max_size=60))
def test_a_key_is_its_own_key(name: str) -> None:
    key = cpu_model_key(name)
    assert cpu_model_key(key) == key
    assert key == " ".join(key.split())


@pytest.mark.parametrize("noise", ["Processor", "CPU @ 2.50GHz", "AMD", "16-Core", "®", "(R) (TM)"])
def test_a_name_of_noise_alone_keeps_its_text(noise: str) -> None:
    assert cpu_model_key(noise) == noise.casefold()


def test_part_id_is_one_word() -> None:
    assert cpu_model_id("xeon gold 6534") == "xeon-gold-6534"
