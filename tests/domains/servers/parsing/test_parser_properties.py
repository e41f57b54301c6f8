"""Properties of every parser: any text gives a result, blanks and case change nothing, long texts end quickly."""

import string
from dataclasses import is_dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing import (
    cache,
    compiler,
    memory,
    operating_system,
    processor_texts,
    scalars,
    storage,
)
from perfcast.domains.servers.parsing.text_normalization import MAX_LENGTH

WELL_FORMED = {
    memory.parse_memory: "416 GB (9 x 32 GB 2Rx4 PC4-2933Y-R; 2 x 64 GB 4Rx4 PC4-3200AA-L, running at 2666)",
    cache.parse_l1: "48 KB I + 24 KB D on chip per core",
    cache.parse_l2: "3 MB I+D on chip per core",
    cache.parse_l3: "72 MB I+D on chip per chip, 48 MB shared / 5 cores + 24 MB shared / 5 cores",
    cache.parse_other_cache: "24 MB I+D off chip per 4 DIMMs",
    operating_system.parse_operating_system: "SUSE Linux Enterprise Server 15 SP3 (x86_64), Kernel 5.3.18-99-default",
    compiler.parse_compiler: "C/C++: Version 2.3.0 of AOCC;, Fortran: Version 9.2.0 of GCC",
    scalars.parse_disclosure: '<A HREF="/cpu2017/results/res2030q4/cpu2017-20301109-00042.html">HTML</A>',
    processor_texts.parse_orderable: "1, 3 to 6 chip(s)",
    storage.parse_storage: "3 x 450 GB SATA SSD, RAID 0",
    scalars.parse_number: "7.25",
    scalars.parse_flag: "Yes",
    scalars.parse_pointer_bits: "32/64-bit",
    scalars.parse_month: "Mar-2031",
}
EXAMPLES = pytest.mark.parametrize(
    ("parse", "text"), WELL_FORMED.items(), ids=[parse.__name__ for parse in WELL_FORMED]
)
PIECES = st.sampled_from(sorted({piece for text in WELL_FORMED.values() for piece in text.split()}) + list(" ,;()+-/x"))
HOSTILE = st.text() | st.text(alphabet=string.printable) | st.lists(PIECES, max_size=30).map(" ".join)


@EXAMPLES
def test_a_well_formed_text_is_complete(parse, text):
    assert parse(text).complete


@EXAMPLES
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_text_gives_a_result(parse, text, data):
    result = parse(data.draw(HOSTILE))
    assert is_dataclass(result)
    assert isinstance(result.complete, bool)


@pytest.mark.parametrize("parse", [parse for parse in WELL_FORMED if parse is not storage.parse_storage])
@settings(max_examples=50, deadline=None)
@given(word=st.text(alphabet="qwjzQWJZ§é٣", min_size=3, max_size=8), first=st.booleans())
def test_a_foreign_word_makes_the_result_incomplete(parse, word, first):
    text = WELL_FORMED[parse]
    assert not parse(f"{word} {text}" if first else f"{text} {word}").complete


@EXAMPLES
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_blanks_and_case_carry_nothing(parse, text, data):
    blank = st.text(alphabet=" \t\n\r\f\u00a0", min_size=1, max_size=4)
    varied = "".join(data.draw(blank) if char == " " else char for char in text)
    varied = data.draw(blank) + varied + data.draw(blank)
    change = data.draw(st.sampled_from([str.lower, str.upper, str.swapcase, str]))
    assert parse(change(varied)) == parse(text)


@EXAMPLES
def test_a_text_beyond_the_limit_is_incomplete(parse, text):
    assert parse(text + " " * (MAX_LENGTH - len(text))).complete
    assert not parse(text + " " * (MAX_LENGTH + 1 - len(text))).complete
    for char in string.printable:
        assert not parse(char * 100_000).complete


@EXAMPLES
def test_repetition_of_any_piece_up_to_the_limit_ends(parse, text):
    for piece in {*text.split(), *text, *string.printable}:
        parse((piece * MAX_LENGTH)[:MAX_LENGTH])
        parse((f"{piece} " * MAX_LENGTH)[:MAX_LENGTH])
