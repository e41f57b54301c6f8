"""Generated texts round-trip; every distinct text of a column is parsed once."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.perfcastdb.run_values import (
    decode_part_number,
    pool_modules,
)
from perfcast.domains.servers.parsing import distinct_texts
from perfcast.domains.servers.parsing.cache import parse_l2, parse_l3
from perfcast.domains.servers.parsing.memory import ECC_BY_TYPE, parse_memory
from perfcast.domains.servers.parsing.scalars import (
    parse_flag,
)
from perfcast.domains.servers.parsing.software import (
    is_under_xalanc_notice,
    parse_compiler,
)

MB = st.integers(1, 2048)
CORES = st.integers(1, 256)


@given(total=MB, mb=MB, cores=CORES)
def test_l3_slices_round_trip(total, mb, cores):
    slices = {
        "": (None, None),
        f", {mb} MB shared / {cores} cores": (mb, cores),
        f", {mb} MB per core": (mb, 1),
    }
    for text, (size, sharing) in slices.items():
        l3 = parse_l3(f"{total} MB I+D on chip per chip{text}")
        assert not l3.l3_asymmetric
        assert (
            l3.l3_mb_per_chip,
            l3.l3_slice_mb,
            l3.l3_cores_per_slice,
        ) == (total, size, sharing)
    shared = f"{3 * mb} MB shared / {cores} cores + {mb} MB shared / {cores} cores"
    l3 = parse_l3(f"{4 * mb} MB I+D on chip per chip, {shared}")
    assert l3.l3_asymmetric and l3.l3_cores_per_slice == cores
    assert l3.l3_mb_per_chip == 2 * l3.l3_slice_mb


ONEAPI = "Intel oneAPI DPC++/C++ Compiler"
CLASSIC = "Intel C/C++ Compiler"


def compilers(*parts):
    return " ".join(f"{languages}: Version {version} of {product} for Linux" for languages, version, product in parts)


@given(
    major=st.integers(1, 2030),
    minor=st.integers(0, 99),
    patch=st.sampled_from(["", ".0", ".3.199"]),
    product=st.sampled_from(["AOCC", "GCC", "BiSheng", "Oracle Developer Studio"]),
    data=st.data(),
)
def test_one_compiler_round_trips_wherever_lines_were_broken(major, minor, patch, product, data):
    words = compilers(("C/C++/Fortran", f"{major}.{minor}{patch}", product)).split(" ")
    breaks = st.sampled_from([" ", ", ", ";, "])
    compiler = parse_compiler("".join(word + data.draw(breaks) for word in words))
    assert compiler.complete
    assert product.startswith(compiler.compiler_vendor)
    assert compiler.compiler_major_minor == f"{major}.{minor}"
    assert not compiler.mixed_fortran


def test_the_notice_on_xalancbmk_follows_suite_and_release():
    noticed = ["rate 2022.0", "rate 2022.2.1", "speed 2023.0", " 2023.0.0"]
    for name in (*noticed, "rate 2023.1", "rate 2021.4"):
        metric, version = name.split(" ")
        under = is_under_xalanc_notice(f"CINT2017{metric}", parse_compiler(compilers(("C/C++", version, ONEAPI))))
        assert under is (name in noticed)
    for suite, product in (("CFP2017rate", ONEAPI), ("CINT2017rate", CLASSIC)):
        assert not is_under_xalanc_notice(suite, parse_compiler(compilers(("C/C++", "2023.0", product))))


def test_pool_means_numbers_and_mixes_texts():
    parts = (
        "MTC40F2046S1RC48BA1",
        "MTC20F2085S1RC48BA1",
        "M321R6GA0BB0-CQKZZ",
        "unknown",
    )
    micron, other, samsung, unknown = map(decode_part_number, parts)
    known = {name: value for name, value in pool_modules([micron, other, samsung]).items() if value is not None}
    assert known == {"dimm_vendor": "mixed", "dimm_type": "R", "dimm_part_mts": 4800.0}
    assert pool_modules([micron, other])["dimm_width"] == 6.0
    assert pool_modules([micron, micron]) == micron
    assert {*pool_modules([]).values(), *pool_modules([micron, unknown]).values()} == {None}


GRADES = {
    4: (1600, 1866, 2133, 2400, 2667, 2933, 3200),
    5: (4000, 4400, 4800, 5200, 5600, 6400, 8800),
}
GROUP = st.tuples(
    st.integers(1, 999),
    st.sampled_from([8, 16, 48, 128]),
    st.sampled_from(["", "1Rx8 ", "2Rx4 ", "4DRx4 ", "2S2Rx4 "]),
    st.sampled_from(["", "A", "BB"]),
    st.sampled_from(sorted(ECC_BY_TYPE)),
)


@given(
    groups=st.lists(GROUP, min_size=1, max_size=3),
    generation=st.sampled_from(sorted(GRADES)),
    separator=st.sampled_from(["; ", ", ", " + "]),
    hbm=st.integers(0, 8),
    data=st.data(),
)
def test_a_generated_text_round_trips(groups, generation, separator, hbm, data):
    rates = [data.draw(st.sampled_from(GRADES[generation])) for _ in groups]
    running = data.draw(st.none() | st.sampled_from(GRADES[generation]))
    parts = [
        f"{count} x {size} GB {ranks}PC{generation}-{rate}{grade}-{letter}"
        for (count, size, ranks, grade, letter), rate in zip(groups, rates, strict=True)
    ]
    parts += [f"{hbm} x 16 GB HBM"] if hbm else []
    total = sum(group[0] * group[1] for group in groups) + 16 * hbm
    memory = parse_memory(f"{total} GB ({separator.join(parts)}{f', running at {running}' if running else ''})")

    main = max(groups, key=lambda group: group[0])
    assert memory.complete
    assert memory.mem_total_gb == memory.mem_sum_gb == total
    assert memory.hbm_gb == 16 * hbm
    assert memory.dimm_count == sum(group[0] for group in groups)
    assert memory.dimm_groups == len(groups)
    assert (memory.dimm_gb, memory.dimm_type, memory.ecc) == (
        main[1],
        main[4],
        ECC_BY_TYPE[main[4]],
    )
    assert (
        memory.dimm_ranks
        == {
            "": None,
            "1Rx8 ": 1,
            "2Rx4 ": 2,
            "4DRx4 ": 4,
            "2S2Rx4 ": 4,
        }[main[2]]
    )
    assert memory.ddr_gen == generation
    assert (memory.mem_rated_mts, memory.mem_running_mts) == (min(rates), running)
    assert memory.mem_eff_mts == (running or min(rates))


def coded(texts):
    # an unused category first: numbers of categories and order of appearance differ
    return pd.Series(pd.Categorical(texts, pd.Index(["never", *sorted(set(texts))[::-1]], dtype="str")))


def test_every_distinct_text_is_mapped_once_and_unused_ones_never():
    calls = []
    column = distinct_texts.map_distinct(coded(["b", "a", "b"]), lambda text: calls.append(text) or len(calls))
    assert sorted(calls) == ["a", "b"] and column[0] == column[2] != column[1]
    column = distinct_texts.map_distinct(coded(["a", "A", "b"]), str.lower)
    assert column.tolist() == ["a", "a", "b"] and column.cat.categories.is_unique
    codes, texts = distinct_texts.encode_texts(pd.Series(pd.Categorical(["a", None, "a"])))
    assert (codes.tolist(), texts) == ([0, -1, 0], ["a"]), "a missing text has no code"


def test_a_column_keeps_its_index_and_parses_each_text_once():
    text = "3 MB I+D on chip per core"
    calls = []
    column = pd.Series([text, None, text], index=[7, 3, 5])
    names = ["l2_kb_per_core", "l2_scope"]
    frame = distinct_texts.parse_column(column, lambda each: calls.append(each) or parse_l2(each), names)
    assert list(filter(None, calls)) == [text] and list(frame.index) == [7, 3, 5]
    np.testing.assert_array_equal(frame["l2_kb_per_core"], [3072, np.nan, 3072])
    assert frame["l2_scope"].astype("str").fillna("missing").tolist() == [
        "core",
        "missing",
        "core",
    ]
    empty = distinct_texts.parse_column(pd.Series([], dtype=str), parse_l3, ["l3_mb_per_chip"])
    assert len(empty) == 0 and "l3_mb_per_chip" in empty
    flags = distinct_texts.parse_column(pd.Series(["Yes", "No", "?"]), parse_flag, ["value"])
    np.testing.assert_array_equal(flags["value"], [1, 0, np.nan])
