"""Cache texts: generated ones round-trip; sizes stay None where the text does not give them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3

KB = st.integers(8, 4096)
MB = st.integers(1, 2048)
CORES = st.integers(1, 256)


@settings(max_examples=50, deadline=None)
@given(KB, KB)
def test_l1_round_trips(instruction, data):
    l1 = parse_l1(f"{instruction} KB I + {data} KB D on chip per core")
    assert (l1.l1i_kb, l1.l1d_kb) == (instruction, data)


@settings(max_examples=50, deadline=None)
@given(KB)
def test_l2_per_core_round_trips_in_any_unit(kb):
    assert parse_l2(f"{kb} KB I+D on chip per core").l2_kb_per_core == kb
    assert parse_l2(f"{kb / 4} MB I+D on chip per core").l2_kb_per_core == kb * 256


@settings(max_examples=100, deadline=None)
@given(total=MB, mb=MB, cores=CORES)
def test_l3_slices_round_trip(total, mb, cores):
    plain = parse_l3(f"{total} MB I+D on chip per chip")
    sliced = parse_l3(f"{total} MB I+D on chip per chip, {mb} MB shared / {cores} cores")
    per_core = parse_l3(f"{total} MB I+D on chip per chip, {mb} MB per core")
    assert (plain.l3_mb_per_chip, plain.l3_slice_mb, plain.l3_cores_per_slice) == (total, None, None)
    assert (sliced.l3_mb_per_chip, sliced.l3_slice_mb, sliced.l3_cores_per_slice) == (total, mb, cores)
    assert (per_core.l3_mb_per_chip, per_core.l3_slice_mb, per_core.l3_cores_per_slice) == (total, mb, 1)
    assert not sliced.l3_asymmetric


@settings(max_examples=50, deadline=None)
@given(small=MB, cores=CORES)
def test_different_slices_are_asymmetric_and_their_mean_keeps_the_total(small, cores):
    large = 3 * small
    slices = f"{large} MB shared / {cores} cores + {small} MB shared / {cores} cores"
    l3 = parse_l3(f"{small + large} MB I+D on chip per chip, {slices}")
    assert l3.l3_asymmetric
    assert l3.l3_mb_per_chip == 2 * l3.l3_slice_mb
    assert l3.l3_cores_per_slice == cores
