"""Compiler texts: generated ones round-trip; the notice on 523.xalancbmk follows suite and release."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.software import is_under_xalanc_notice, parse_compiler

ONEAPI = "Intel oneAPI DPC++/C++ Compiler"
CLASSIC = "Intel C/C++ Compiler"
FORTRAN = "Intel Fortran Compiler"


def text(*parts):
    return " ".join(f"{languages}: Version {version} of {product} for Linux" for languages, version, product in parts)


@settings(max_examples=100, deadline=None)
@given(
    major=st.integers(1, 2030),
    minor=st.integers(0, 99),
    patch=st.sampled_from(["", ".0", ".3.199"]),
    product=st.sampled_from(["AOCC", "GCC", "BiSheng", "Oracle Developer Studio"]),
    data=st.data(),
)
def test_one_compiler_round_trips_wherever_lines_were_broken(major, minor, patch, product, data):
    words = text(("C/C++/Fortran", f"{major}.{minor}{patch}", product)).split(" ")
    breaks = st.sampled_from([" ", ", ", ";, "])
    compiler = parse_compiler("".join(word + data.draw(breaks) for word in words))
    assert compiler.complete
    assert product.startswith(compiler.compiler_vendor)
    assert compiler.compiler_major_minor == f"{major}.{minor}"
    assert not compiler.mixed_fortran


@pytest.mark.parametrize(
    ("parts", "vendor", "classic", "oneapi", "mixed"),
    [
        ([("C/C++", "19.1.3", CLASSIC), ("Fortran", "19.1.3", FORTRAN)], "Intel classic", True, False, False),
        ([("C/C++", "2024.1", ONEAPI), ("Fortran", "2024.1", FORTRAN)], "Intel oneAPI", False, True, False),
        ([("C/C++", "2024.1", ONEAPI), ("Fortran", "2024.1", f"{FORTRAN} Classic")], "Intel oneAPI", True, True, False),
        ([("C/C++", "2021.6", CLASSIC), ("C/C++", "2022.2", ONEAPI)], "Intel oneAPI", True, True, False),
        ([("C/C++", "2022.2", ONEAPI), ("Fortran", "2021.7", FORTRAN)], "Intel oneAPI", False, True, True),
        (
            [("Fortran", "2021.3", f"{FORTRAN} Classic"), ("C/C++", "2021.3", f"{CLASSIC} Classic")],
            "Intel classic",
            True,
            False,
            False,
        ),
        ([("C/C++", "2.3.0", "AOCC"), ("Fortran", "9.2.0", "GCC")], "AOCC", False, False, True),
    ],
)
def test_two_compilers(parts, vendor, classic, oneapi, mixed):
    compiler = parse_compiler(text(*parts))
    assert compiler.complete
    assert compiler.compiler_vendor == vendor
    assert (compiler.compiler_classic, compiler.oneapi, compiler.mixed_fortran) == (classic, oneapi, mixed)


@pytest.mark.parametrize(
    ("suite", "version", "product", "noticed"),
    [
        ("CINT2017rate", "2022.0", ONEAPI, True),
        ("CINT2017rate", "2022.2.1", ONEAPI, True),
        ("CINT2017speed", "2023.0", ONEAPI, True),
        ("CINT2017", "2023.0.0", ONEAPI, True),
        ("CINT2017rate", "2023.1", ONEAPI, False),
        ("CINT2017rate", "2021.4", ONEAPI, False),
        ("CFP2017rate", "2023.0", ONEAPI, False),
        ("CINT2017rate", "2023.0", CLASSIC, False),
    ],
)
def test_notice(suite, version, product, noticed):
    assert is_under_xalanc_notice(suite, parse_compiler(text(("C/C++", version, product)))) is noticed
