"""Properties of the readers of numbers, names, records, tools and fields."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.gemm.datasets import gemm_records
from perfcast.domains.servers.datasets.perfcastdb import run_values
from perfcast.domains.servers.hardware_info import find_cpu_model, parse_modules
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key
from perfcast.domains.servers.server_rules import SERVERS
from perfcast.inference.machine_fields import MachineFields, read_number
from perfcast.inference.name_lookup import EntityNames
from perfcast.microbench import machine as lscpu
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError, printable

HOSTILE = st.text() | st.text(alphabet=string.printable)
UNITS = ("MHz", "MT/s", "KiB", "MiB", "GiB", "GB", "W", "bit", "")


@given(st.text(), st.sampled_from(UNITS))
def test_a_number_is_finite_or_refused(text, unit):
    try:
        assert math.isfinite(read_number(text, unit))
    except ValueError as error:
        assert printable(str(error)) == str(error)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(UNITS))
def test_a_number_is_read_back_as_it_was(value, unit):
    assert read_number(repr(value), unit) == value
    assert read_number(f" {value!r} {unit} ", unit) == value


@given(st.floats(1, 1e9), st.sampled_from(["MHz", "KiB", "W"]))
def test_a_larger_unit_makes_a_larger_number(value, unit):
    larger = {"MHz": ("GHz", 1000), "KiB": ("MiB", 1024), "W": ("kW", 1000)}[unit]
    assert read_number(f"{value!r} {larger[0]}", unit) == pytest.approx(value * larger[1])


@given(HOSTILE)
def test_the_key_of_a_key_is_the_key(text):
    key = cpu_model_key(text)
    assert cpu_model_key(key) == key
    assert bool(key) == bool(text.split())
    assert " " not in cpu_model_id(key)
    find_cpu_model(text)


NAMES = EntityNames(SERVERS, ["epyc 9654", "epyc 9654p", "xeon platinum 8592+", "xeon platinum 8592v", "core i5-8600"])


@given(HOSTILE | st.sampled_from(NAMES.keys))
def test_a_part_that_is_found_is_a_known_one(text):
    result = NAMES.find(text)
    assert result.key is None or (result.key in NAMES.keys and not result.candidates)
    assert set(result.candidates) <= set(NAMES.keys)
    assert set(NAMES.complete(text, 3)) <= set(NAMES.keys)
    if text in NAMES.keys:
        assert (result.key, result.exact) == (text, True)


@given(st.lists(st.text(alphabet=string.ascii_uppercase + string.digits + "-", max_size=24) | st.text(), max_size=5))
def test_part_numbers_of_modules_say_what_all_agree_on(texts):
    parts = [run_values.decode_part_number(text) for text in texts]
    assert run_values.pool_modules(parts * 2) == run_values.pool_modules(parts)


@given(st.text(alphabet="0123456789,\n\r xGPU_") | st.text())
def test_every_stretch_of_lines_is_a_record_or_has_a_reason(text):
    result = list(gemm_records.parse_records(text))
    assert all(bool(record.fields) != bool(record.reason) for record in result)
    assert [record.line for record in result] == sorted({record.line for record in result})
    assert bool(result) == any(line.rstrip("\r") for line in text.split("\n"))


@given(
    st.text()
    | st.recursive(
        st.none() | st.text() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["lscpu", "field", "data", "children"]), inner),
    ).map(str)
)
def test_what_tools_print_never_fails(text):
    for fields in (lscpu.parse_json_fields(text), lscpu.parse_text_fields(text)):
        assert all(isinstance(name, str) and isinstance(value, str) for name, value in fields)
        assert isinstance(lscpu.first_value(fields, "CPU(s)"), str)
    size = lscpu.parse_cache_size(text)
    assert size is None or (math.isfinite(size.kib) and size.kib >= 0)
    assert lscpu.parse_count(text) is None or str(lscpu.parse_count(text)) == text.lstrip("0") or set(text) == {"0"}
    assert lscpu.count_cpus(text) >= 0
    parse_modules(text)
    parse_modules(f"Handle 0x0039, DMI type 17, 84 bytes\nMemory Device\n\tSize: {text}\n\tSpeed: {text}\n")


WORDS = MachineFields(
    (
        Column("part", Kind.CATEGORICAL, Role.KEY, "processor"),
        Column("clock", Kind.NUMERICAL, Role.FEATURE, "processor", "MHz", low=1, high=10_000),
        Column("available", Kind.DATE, Role.PROVENANCE, "provenance"),
    )
)
VALUES = st.none() | st.text() | st.integers() | st.floats() | st.booleans() | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(["part", "clock", "available", "Clock", "processor.clock"]) | st.text(), VALUES))
def test_fields_are_cells_within_bounds_or_one_line(stated):
    try:
        cells = WORDS.cells(stated, "machine 1")
    except UserError as error:
        assert str(error).isprintable()
        return
    assert set(cells) <= {"part", "clock", "available"}
    assert 1 <= cells.get("clock", 1) <= 10_000
    WORDS.stack([cells], [1])
