"""Columns of one value: months, numbers, chips, storage, identifiers."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.scalars import (
    parse_disclosure,
    parse_month,
    parse_number,
    parse_orderable,
)
from perfcast.domains.servers.parsing.software import parse_storage


@settings(max_examples=100, deadline=None)
@given(st.dates())
def test_months_round_trip(day):
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    assert parse_month(f"{names[day.month - 1]}-{day.year:04}") == day.replace(day=1)


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(0, 3))
def test_numbers_round_trip(number, places):
    assert parse_number(f"{number / 10**places:.{places}f}") == number / 10**places


@pytest.mark.parametrize("text", ["", "abc", "0.5"])
def test_impossible_numbers_are_missing(text):
    assert parse_number(text, low=1) is None


@settings(max_examples=50, deadline=None)
@given(day=st.dates(date(2016, 1, 1), date(2040, 1, 1)), number=st.integers(0, 99999), quarter=st.integers(1, 4))
def test_disclosures_round_trip(day, number, quarter):
    name = f"cpu2017-{day:%Y%m%d}-{number:05}"
    links = " ".join(f'<A HREF="/x/res{day.year}q{quarter}/{name}.{end}">{end}</A>' for end in ("html", "csv"))
    disclosure = parse_disclosure(links)
    assert (disclosure.result_id, disclosure.arrival_day) == (name, day)


@settings(max_examples=100, deadline=None)
@given(
    counts=st.sets(st.integers(1, 99), min_size=1, max_size=6),
    comma=st.sampled_from([",", ", ", " or "]),
    word=st.sampled_from(["", " chip", " chips", " chip(s)", " (chip)s", " Chips"]),
)
def test_orderable_lists_round_trip(counts, comma, word):
    orderable = parse_orderable(comma.join(map(str, sorted(counts))) + word)
    assert (orderable.orderable_min, orderable.orderable_max) == (min(counts), max(counts))


@settings(max_examples=100, deadline=None)
@given(
    devices=st.integers(1, 99),
    size=st.integers(16, 9999),
    unit=st.sampled_from(["GB", " GB", " TB", "G"]),
    kind=st.sampled_from([("SATA SSD", "ssd"), ("NVMe SSD", "nvme"), ("SAS HDD", "hdd"), ("SATA, 7200 RPM", "hdd")]),
    last=st.booleans(),
)
def test_storage_round_trips(devices, size, unit, kind, last):
    capacity = f"{size}{unit}"
    storage = parse_storage(f"{devices} x {kind[0]}, {capacity}" if last else f"{devices} x {capacity} {kind[0]}")
    assert storage.complete
    assert storage.storage_class == kind[1]
    assert storage.storage_gb == devices * size * (1000 if "T" in unit else 1)
