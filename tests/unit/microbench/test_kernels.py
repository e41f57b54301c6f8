"""Kernels on small sets: correct results and valid declarations."""

import zlib

import numpy as np
import pytest

from perfcast.domains.gemm import measured_suite as suite
from perfcast.microbench.kernels import KERNELS, powers
from perfcast.utils.errors import UserError

KIB, MIB = 2**10, 2**20
branches, chase, compression, fft, matmul, sort, triad = (KERNELS[name] for name in sorted(KERNELS))
NAMES = suite.kernel_names()


def test_kernel_names_are_the_modules_of_the_package():
    assert set(NAMES) >= {"branches", "chase", "compression", "fft", "matmul", "sort", "triad"}
    with pytest.raises(UserError, match="triad"):
        suite.load_kernel("quad")


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_declares_unit_variants_and_sizes(name):
    kernel = suite.load_kernel(name)
    assert kernel.UNIT
    assert kernel.MEANING
    assert kernel.VARIANTS
    assert isinstance(kernel.SHARED, bool)
    sizes = kernel.sizes(64 * MIB)
    assert sizes == sorted(set(sizes))
    assert sizes[0] >= 4 * KIB
    assert sizes[-1] <= 64 * MIB
    assert kernel.sizes(sizes[0]) == sizes[:1]
    assert kernel.sizes(sizes[0] - 1) == []


@pytest.mark.parametrize(("name", "variant"), [(name, v) for name in NAMES for v in suite.load_kernel(name).VARIANTS])
def test_prepared_call_depends_on_its_seed(name, variant):
    kernel = suite.load_kernel(name)
    size = kernel.sizes(64 * MIB)[0]
    results = []
    for seed in (1, 1, 2):
        prepared = kernel.prepare(variant, size, seed)
        assert prepared.work > 0
        prepared.call()
        prepared.call()
        results.append(prepared.result())
    same, other = (repr(np.asarray(result[0])) for result in (results[1], results[2]))
    assert repr(np.asarray(results[0][0])) == same
    if (name, variant) != ("branches", "regular"):
        assert same != other


def test_memory_kernels_grow_up_to_the_largest_size():
    for kernel in (chase, triad):
        assert kernel.sizes(256 * MIB)[-1] == 256 * MIB
        assert np.all(np.diff(np.log2(kernel.sizes(256 * MIB))) == 1)


def test_cycle_visits_every_line_once():
    lines = 64
    links = chase.cycle(lines, seed=5)
    assert links.ctypes.data % chase.LINE == 0
    position, seen = 0, []
    for _ in range(lines):
        seen.append(position)
        position = int(links[position])
    assert position == 0
    assert sorted(seen) == list(range(0, 8 * lines, 8)), "each line once, at its first word"


def test_chase_visits_each_line_once_per_lap_and_continues():
    lines = 4 * KIB // chase.LINE
    prepared = chase.prepare("lines", 4 * KIB, 3)
    links = chase.cycle(lines, 3)
    last = prepared.result()[0][-1]
    prepared.call()
    (path,) = prepared.result()
    assert path[0] == last
    assert len(set(path[:lines].tolist())) == lines
    np.testing.assert_array_equal(path[1:], links[path[:-1]])
    assert prepared.work == chase.STEPS / 1e6


def test_numpy_with_copying_take_is_refused(monkeypatch):
    def copying(links, index, out, mode):
        out[:] = links[index.copy()]

    monkeypatch.setattr(np, "take", copying)
    with pytest.raises(UserError, match="chase"):
        chase.prepare("lines", 4 * KIB, 0)


def test_triad_adds_once_per_pass_and_counts_24_bytes():
    prepared = triad.prepare("float64", 16 * KIB, 0)
    prepared.call()
    a, c, passes = prepared.result()
    assert passes > triad.MIN_PASSES
    np.testing.assert_allclose(a, passes * triad.SCALE * c, rtol=1e-12)
    assert prepared.work == pytest.approx(24 * passes * len(a) / 1e9)
    assert 2 * a.nbytes == 16 * KIB
    assert triad.prepare("float64", 16 * MIB, 0).result()[2] == triad.MIN_PASSES


@pytest.mark.parametrize("variant", matmul.VARIANTS)
def test_matmul_multiplies(variant):
    prepared = matmul.prepare(variant, 64 * KIB, 0)
    prepared.call()
    a, b, c = prepared.result()
    assert c.dtype == variant
    assert 0.9 * 64 * KIB < 3 * c.nbytes <= 64 * KIB
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert prepared.work == 2 * len(c) ** 3 / 1e9


def test_fft_transforms_and_counts_by_the_convention():
    prepared = fft.prepare("complex128", 32 * 1024, 0)
    prepared.call()
    points, out, times = prepared.result()
    assert len(points) == 1024
    np.testing.assert_allclose(np.fft.ifft(out), points, atol=1e-12)
    assert prepared.work == pytest.approx(times * 5 * 1024 * 10 / 1e9)
    assert times > 1
    assert fft.prepare("complex128", 128 * MIB, 0).result()[2] == 1


def test_sort_repeats_on_the_same_numbers():
    prepared = sort.prepare("int64", 16 * KIB, 0)
    for _ in range(2):
        prepared.call()
        numbers, copy = prepared.result()
        assert (np.diff(numbers) < 0).any()
        np.testing.assert_array_equal(copy, np.sort(numbers))
    assert prepared.work == len(numbers) / 1e6


def test_compression_round_trips_and_shrinks():
    prepared = compression.prepare("text", 64 * KIB, 0)
    prepared.call()
    text, packed = prepared.result()
    assert zlib.decompress(packed) == text
    assert len(text) == 64 * KIB
    assert 0.2 < len(packed) / len(text) < 0.6
    assert prepared.work == len(text) / 1e6


def test_both_branch_patterns_do_the_same_work():
    masks = {}
    for variant in branches.VARIANTS:
        prepared = branches.prepare(variant, 68 * KIB, 0)
        prepared.call()
        mask, source, target = prepared.result()
        np.testing.assert_array_equal(target, np.where(mask, source, 0))
        masks[variant] = mask
    regular, random = masks["regular"], masks["random"]
    assert regular[:8].tolist() == [False, False, True, True] * 2
    assert len(regular) == len(random) == 4 * KIB
    assert regular.sum() == random.sum() == len(regular) / 2
    runs = {name: int((mask[1:] != mask[:-1]).sum()) for name, mask in masks.items()}
    assert runs["random"] == pytest.approx(runs["regular"], rel=0.1), "the same number of changes, in random places"


def test_powers_end_at_the_largest():
    assert powers(4, 40) == [4, 8, 16, 32]
    assert powers(4, 64, 4) == [4, 16, 64]
    assert powers(8, 4) == []
