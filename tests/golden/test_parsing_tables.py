"""Tricky inputs of every text column against tables reviewed by hand; `pytest --fix` rewrites the tables."""

from pathlib import Path

import golden_tables
import pytest

from perfcast.domains.servers.parsing import (
    cache,
    memory,
    scalars,
    software,
)

TABLES = Path(__file__).parent / "parsing"
PARSERS = {
    "memory": memory.parse_memory,
    "cache_l1": cache.parse_l1,
    "cache_l2": cache.parse_l2,
    "cache_l3": cache.parse_l3,
    "cache_other": cache.parse_other_cache,
    "operating_system": software.parse_operating_system,
    "compiler": software.parse_compiler,
    "orderable": scalars.parse_orderable,
    "storage": software.parse_storage,
    "described_memory": memory.parse_described_memory,
    "described_compiler": software.parse_described_compiler,
    "described_operating_system": software.parse_described_operating_system,
    "described_storage": software.parse_described_storage,
    "disclosure": scalars.parse_disclosure,
    "month": scalars.parse_month,
    "number": scalars.parse_number,
    "flag": scalars.parse_flag,
    "pointer": scalars.parse_pointer_bits,
}


def test_every_table_has_a_parser():
    assert {path.stem for path in TABLES.glob("*.csv")} == set(PARSERS)


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_table(name, request):
    golden_tables.check(TABLES / f"{name}.csv", PARSERS[name], fix=request.config.getoption("--fix", default=False))
