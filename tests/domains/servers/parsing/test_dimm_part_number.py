"""Part numbers of memory modules: what is certain, and nothing more."""

from __future__ import annotations

from dataclasses import astuple

from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.dimm_part_number import DimmModule, decode_part_number, pool_modules

MICRON = DimmModule("Micron", "R", 5, 64.0, 2, 4, 16.0, 40, 4800.0)


def test_pool_means_numbers_and_mixes_texts() -> None:
    pooled = pool_modules(
        [
            decode_part_number("MTC40F2046S1RC48BA1"),
            decode_part_number("MTC20F2085S1RC48BA1"),
            decode_part_number("M321R6GA0BB0-CQKZZ"),
        ]
    )
    assert pooled == DimmModule("mixed", "R", 5.0, 48.0, None, None, None, None, 4800.0)
    assert pool_modules([MICRON, MICRON]) == MICRON


def test_pool_of_nothing_and_of_an_unknown_module_says_nothing() -> None:
    assert pool_modules([]) == DimmModule()
    assert pool_modules([MICRON, decode_part_number("unknown")]) == DimmModule()


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=40), st.from_regex(r"MTC[0-9]{2}F[1248]0[48][0-9]S1RC[0-9]{2}BA1", fullmatch=True)))
def test_decode_never_fails_and_never_contradicts_itself(text: str) -> None:
    part = decode_part_number(text)
    assert part.vendor is not None or set(astuple(part)) == {None}
    if part.devices is not None and part.ranks is not None and part.width is not None:
        assert part.devices * part.width == 80 * part.ranks
        assert part.density_gbit is not None and part.capacity_gb is not None
        assert part.density_gbit * part.ranks * 64 / part.width == part.capacity_gb * 8
