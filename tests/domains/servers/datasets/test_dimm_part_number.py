"""Part numbers of memory modules: what is certain, and nothing more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.perfcastdb.run_values import decode_part_number, pool_modules

MICRON = decode_part_number("MTC40F2046S1RC48BA1")


def test_pool_means_numbers_and_mixes_texts() -> None:
    parts = ("MTC40F2046S1RC48BA1", "MTC20F2085S1RC48BA1", "M321R6GA0BB0-CQKZZ")
    pooled = pool_modules([decode_part_number(part) for part in parts])
    known = {name: value for name, value in pooled.items() if value is not None}
    assert known == {"dimm_vendor": "mixed", "dimm_type": "R", "dimm_part_mts": 4800.0}
    assert pool_modules(list(map(decode_part_number, parts[:2])))["dimm_width"] == 6.0
    assert pool_modules([MICRON, MICRON]) == MICRON


def test_pool_of_nothing_and_of_an_unknown_module_says_nothing() -> None:
    assert set(pool_modules([]).values()) == {None}
    assert set(pool_modules([MICRON, decode_part_number("unknown")]).values()) == {None}


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=40), st.from_regex(r"MTC[0-9]{2}F[1248]0[48][0-9]S1RC[0-9]{2}BA1", fullmatch=True)))
def test_decode_never_fails_and_never_contradicts_itself(text: str) -> None:
    part = decode_part_number(text)
    assert part["dimm_vendor"] is not None or set(part.values()) == {None}
    if part["dimm_devices"] is not None:
        assert part["dimm_devices"] * part["dimm_width"] == 80 * part["dimm_ranks"]
        assert part["dimm_density_gbit"] is not None
