"""Properties of all readers of texts: any text gives a result, blanks and case carry nothing, long texts end soon."""

import string
import time
from dataclasses import is_dataclass
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.spec_java.power import java_cpu_model_key
from perfcast.domains.servers.hardware_info import find_cpu_model
from perfcast.domains.servers.parsing import cache, memory, scalars, software
from perfcast.domains.servers.parsing.text_normalization import MAX_LENGTH
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key

WELL_FORMED = {
    memory.parse_memory: "416 GB (9 x 32 GB 2Rx4 PC4-2933Y-R; 2 x 64 GB 4Rx4 PC4-3200AA-L, running at 2666)",
    software.parse_operating_system: "SUSE Linux Enterprise Server 15 SP3 (x86_64), Kernel 5.3.18-99-default",
    software.parse_storage: "3 x 450 GB SATA SSD, RAID 0",
}
FREE = {
    software.parse_compiler: "C/C++: Version 2.3.0 of AOCC;, Fortran: Version 9.2.0 of GCC",
    scalars.parse_month: "Mar-2031",
    scalars.parse_pointer_bits: "32/64-bit",
    scalars.parse_flag: "Yes",
    scalars.parse_number: "7.25",
    scalars.parse_orderable: "1, 3 to 6 chip(s)",
    scalars.parse_disclosure: '<A HREF="/cpu2017/results/res2030q4/cpu2017-20301109-00042.html">HTML</A>',
    cache.parse_other_cache: "24 MB I+D off chip per 4 DIMMs",
    cache.parse_l3: "72 MB I+D on chip per chip, 48 MB shared / 5 cores + 24 MB shared / 5 cores",
    cache.parse_l2: "3 MB I+D on chip per core",
    cache.parse_l1: "48 KB I + 24 KB D on chip per core",
    memory.parse_dimms: "8 x 16 GB DDR4-2933 (dual rank)",
    memory.parse_module: "16 GB 2Rx4 PC4-2933Y-R",
    software.parse_jvm: "Oracle Java HotSpot 64-bit Server VM 1.8.0_25 on Linux, version 1.8.0_25",
    software.parse_any_operating_system: "Microsoft Windows Server 2008 R2 Enterprise (64 bit)",
}
"""Parsers of texts that need not be understood whole."""

PARSERS = {**WELL_FORMED, **FREE}

PARSERS_AND_TEXTS = pytest.mark.parametrize(("parse", "text"), PARSERS.items())
EXAMPLES = pytest.mark.parametrize(("parse", "text"), WELL_FORMED.items())
PIECES = sorted({piece for text in PARSERS.values() for piece in text.split()})
LONG_PIECES = [
    "1 x 1 GB ",
    "PC3-",
    "(" * 50,
    "1.7.0_",
    "(I+D) per ",
    "R2 Windows ",
]
HOSTILE = (
    st.text()
    | st.text(alphabet=string.printable)
    | st.lists(st.sampled_from([*PIECES, *" ,;()+*-/x@²٢"]), max_size=40).map(" ".join)
)
BLANKS = st.text(alphabet=" \t\n\r\f\u00a0", max_size=4)


@EXAMPLES
def test_a_well_formed_text_is_complete(parse, text):
    assert parse(text).complete


@PARSERS_AND_TEXTS
@given(data=st.data())
def test_any_text_gives_one_result(parse, text, data):
    drawn = data.draw(HOSTILE)
    result = parse(drawn)
    assert is_dataclass(result) or result is None or isinstance(result, str | float | date)
    assert parse(drawn) == result
    assert not any(vars(parse("")).values() if is_dataclass(parse("")) else [parse("")])


@PARSERS_AND_TEXTS
@settings(max_examples=40)
@given(data=st.data())
def test_blanks_and_case_carry_nothing(parse, text, data):
    varied = text
    if parse in WELL_FORMED:
        varied = "".join(data.draw(BLANKS.filter(bool)) if char == " " else char for char in text)
        varied = data.draw(st.sampled_from([str.lower, str.upper, str.swapcase, str]))(varied)
    assert parse(data.draw(BLANKS) + varied + data.draw(BLANKS)) == parse(text)


@EXAMPLES
def test_a_text_beyond_the_limit_is_incomplete(parse, text):
    assert parse(text + " " * (MAX_LENGTH - len(text))).complete
    assert not parse(text + " " * (MAX_LENGTH + 1 - len(text))).complete
    for char in string.printable:
        assert not parse(char * 100_000).complete


@pytest.mark.parametrize("parse", [*PARSERS, cache.rewrite_cache_text])
def test_repetition_of_any_piece_ends_quickly(parse):
    for piece in {
        *PARSERS.get(parse, "").split(),
        *PARSERS.get(parse, ""),
        *string.printable,
        *LONG_PIECES,
    }:
        began = time.process_time()
        parse((piece * MAX_LENGTH)[:MAX_LENGTH])
        parse((f"{piece} " * MAX_LENGTH)[:MAX_LENGTH])
        parse(piece * MAX_LENGTH * 2)
        assert time.process_time() - began < 1


@given(HOSTILE)
def test_the_key_of_a_key_is_the_key(text):
    key = cpu_model_key(text)
    assert cpu_model_key(key) == key and bool(key) == bool(text.split())
    assert " " not in cpu_model_id(key)
    assert isinstance(cache.rewrite_cache_text(text) + java_cpu_model_key(text), str)
    find_cpu_model(text)
