"""Kernels of `perfcast measure suite`, one class each.

The call of a kernel must run native code that releases Python's lock, so that threads do not wait for each other. It
should last 100 us or more, so that the overhead of the call is small.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided

from perfcast.utils.errors import UserError

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class PreparedCall:
    """A prepared call.

    Units: `work` of one call in the numerator of the kernel's unit (GB, GFLOP, Melements, ...), so that work / seconds
    is the rate. `result` returns the input and output arrays of the last call, for tests.
    """

    call: Callable[[], object]
    work: float
    result: Callable[[], tuple[Any, ...]]


def powers(smallest: int, largest: int, step: int = 2) -> list[int]:
    """Return smallest, smallest * step, ... up to `largest`."""
    sizes = []
    while smallest <= largest:
        sizes.append(smallest)
        smallest *= step
    return sizes


class Kernel(ABC):
    """A kernel; its name on the command line is that of its class in lower case.

    `UNIT` is the unit of the rate, where higher is better; `INVERSE` is the unit of 1000 / rate (ns per access), "" for
    none; `MEANING` is a short description; `READING` is a remark for the reader; `VARIANTS` are data types or patterns.
    The rates of threads are added where `SHARED`, else averaged (latency).
    """

    UNIT: ClassVar[str]
    INVERSE: ClassVar[str] = ""
    MEANING: ClassVar[str]
    READING: ClassVar[str] = ""
    VARIANTS: ClassVar[tuple[str, ...]]
    SHARED: ClassVar[bool] = True

    @abstractmethod
    def sizes(self, largest: int) -> list[int]:
        """Return the bytes per thread, at most `largest`."""

    @abstractmethod
    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Prepare a call in the measured thread."""


class Branches(Kernel):
    """Branches: one decision per element, with a predictable and with a random pattern.

    numpy's `putmask` decides for each element whether to copy it. `regular` repeats no, no, yes, yes; `random` has the
    same elements in random order. Work and memory are equal, so that the difference of the times is the cost of
    mispredicted branches, half of the random ones. If both are equally fast, the compiler has made the loop
    branch-free, and the kernel does not measure the branch predictor. A predictor can learn short patterns: the
    smallest set has tens of thousands of decisions.
    """

    UNIT = "Mbranches/s"
    MEANING = "conditional copy by a mask"
    READING = "the extra time of random over regular is the cost of mispredicted branches"
    VARIANTS = ("regular", "random")
    _BYTES = 17
    """Bytes per element: one of the mask, eight of the source, eight of the target."""

    def sizes(self, largest: int) -> list[int]:
        """Return bytes of mask, source and target together."""
        return powers(1 * MIB, min(largest, 64 * MIB), 4)

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Create mask, source and target."""
        n = size // (4 * self._BYTES) * 4
        mask = np.resize([False, False, True, True], n)
        if variant == "random":
            np.random.default_rng(seed).shuffle(mask)
        source, target = np.arange(1, n + 1), np.zeros(n, np.int64)
        return PreparedCall(lambda: np.putmask(target, mask, source), n / 1e6, lambda: (mask, source, target))


class Chase(Kernel):
    """Memory latency: a chain of dependent loads that visits every cache line of a set once per lap.

    The chain runs in numpy's compiled `take`, which copies links[index[i]] to out[i]. `out` is `index` shifted by one:
    each step writes the index that the next step reads, so that no step can start before the previous one has ended.
    The lines form one cycle in random order, which no prefetcher can follow.

    The result also includes a store, its forwarding to the next step and a bounds check (1 to 2 ns together at every
    size; the smallest set, which fits into the L1 cache, shows load and loop together). It includes address translation
    (TLB misses beyond some MiB; numpy requests huge pages from 4 MiB on) and the index, an eighth of a line per step,
    read and written in order. A set that fits into a shared cache is read from memory when other sets evict it within a
    lap.

    numpy does not define `take` for overlapping arguments. If it copied them, there would be no chain. The first call
    is therefore checked step by step against the links.
    """

    UNIT = "Maccesses/s"
    INVERSE = "ns per access"
    MEANING = "dependent loads through a random cycle of cache lines"
    READING = "every access includes the loop: the smallest set shows its time together with the L1 cache"
    VARIANTS = ("lines",)
    SHARED = False
    LINE = 64
    STEPS = 65536
    """Steps of one call: at least 0.1 ms, much longer than the overhead of a call."""

    def sizes(self, largest: int) -> list[int]:
        """Return the total bytes of the lines."""
        return powers(4 * KIB, largest)

    def cycle(self, lines: int, seed: int) -> np.ndarray:
        """Return links between the first words of `lines` cache lines that form one cycle; the other words are zero."""
        words = self.LINE // 8
        order = np.random.default_rng(seed).permutation(lines)
        # aligned to a line, so that no node spans two
        buffer = np.zeros((lines + 1) * words, np.intp)
        start = (-buffer.ctypes.data % self.LINE) // 8
        links = buffer[start : start + lines * words]
        links[words * order] = words * np.roll(order, -1)
        return links

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Link the lines. Raises: UserError when `take` does not follow the links."""
        links = self.cycle(size // self.LINE, seed)
        path = np.zeros(self.STEPS + 1, np.intp)
        index, out = path[:-1], path[1:]

        def call() -> None:
            path[0] = path[-1]
            # mode "raise" would copy first, and "clip" adds two instructions to the chain
            np.take(links, index, out=out, mode="wrap")

        call()
        if not np.array_equal(links[index], out):
            raise UserError(
                "the kernel chase needs a numpy whose take() writes each result before it reads the next index",
                f"numpy {np.__version__} does not",
                "exclude it with --kernels",
            )
        return PreparedCall(call, self.STEPS / 1e6, lambda: (path,))


class Compression(Kernel):
    """Compression: zlib (DEFLATE, level 6) of generated text, in megabytes of text per second.

    The text consists of words with a Zipf distribution and shrinks to about a third. The zlib of the Python build
    (zlib, zlib-ng) affects the result as much as the machine.
    """

    UNIT = "MB/s"
    MEANING = "zlib level 6 of generated text"
    VARIANTS = ("text",)
    LEVEL = 6
    _WORDS = 5000

    def sizes(self, largest: int) -> list[int]:
        """Return the bytes of text; sizes beyond the DEFLATE window of 32 KiB hardly differ."""
        return powers(64 * KIB, min(largest, MIB), 4)

    def text(self, size: int, seed: int) -> bytes:
        """Return `size` bytes of lower-case words, the n-th most frequent with probability ~ 1 / n."""
        random = np.random.default_rng(seed)
        letters = random.integers(ord("a"), ord("z") + 1, size=(self._WORDS, 10), dtype=np.uint8)
        words = [
            bytes(row[:length]) for row, length in zip(letters, random.integers(2, 11, size=self._WORDS), strict=True)
        ]
        weights = 1 / np.arange(1, self._WORDS + 1)
        # a word with its blank has at least three bytes
        choices = random.choice(self._WORDS, size=size // 3 + 1, p=weights / weights.sum())
        return b" ".join(words[i] for i in choices)[:size]

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Generate the text."""
        content = self.text(size, seed)
        packed: list[bytes] = [b""]

        def call() -> None:
            packed[0] = zlib.compress(content, self.LEVEL)

        return PreparedCall(call, len(content) / 1e6, lambda: (content, packed[0]))


class Fft(Kernel):
    """Strided compute: the complex Fourier transform of n = 2^k points by numpy's pocketfft.

    By convention, the rate is 5 n log2 n operations over the time (Frigo and Johnson 2005, FFTW), independent of the
    algorithm. One native call repeats the transform, so that its own cost and that of its table of roots are small. The
    time includes the allocation of work memory by the library.
    """

    UNIT = "GFLOP/s"
    MEANING = "complex Fourier transform, 5 n log2 n operations"
    VARIANTS = ("complex128",)
    _POINTS_PER_CALL = 2**21

    def sizes(self, largest: int) -> list[int]:
        """Return the bytes of input and output together, powers of two."""
        return powers(64 * KIB, min(largest, 256 * MIB), 4)

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Generate random points."""
        n = size // 32
        points = np.random.default_rng(seed).standard_normal((n, 2)).view(variant).ravel()
        out = np.zeros_like(points)
        times = max(1, self._POINTS_PER_CALL // n)
        # all rows share their memory: every transform reads the same points and writes the same result
        rows, results = np.broadcast_to(points, (times, n)), as_strided(out, (times, n), (0, out.itemsize))
        work = times * 5 * n * math.log2(n) / 1e9
        return PreparedCall(lambda: np.fft.fft(rows, out=results), work, lambda: (points, out, times))


class Matmul(Kernel):
    """Dense compute: the product of two square matrices, 2 n^3 operations, by the library of the torch build."""

    UNIT = "GFLOP/s"
    MEANING = "product of square matrices, 2 n^3 operations"
    VARIANTS = ("float32", "float64")

    def sizes(self, largest: int) -> list[int]:
        """Return the bytes of the three matrices together; larger ones take seconds and have the same rate."""
        return powers(256 * KIB, min(largest, 64 * MIB), 4)

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Create two random matrices."""
        dtype = {"float32": torch.float32, "float64": torch.float64}[variant]
        n = math.isqrt(size // (3 * dtype.itemsize))
        generator = torch.Generator().manual_seed(seed)
        a, b = (torch.rand(n, n, generator=generator, dtype=dtype) for _ in range(2))
        c = torch.zeros(n, n, dtype=dtype)
        return PreparedCall(lambda: torch.mm(a, b, out=c), 2 * n**3 / 1e9, lambda: (a.numpy(), b.numpy(), c.numpy()))


class Sort(Kernel):
    """Sorting: random 64-bit integers by numpy's default sort, on a fresh copy per call.

    numpy sorts with vector instructions if the processor has them. The time includes the copy, a few percent of the
    sort.
    """

    UNIT = "Melements/s"
    MEANING = "sort of random 64-bit integers"
    VARIANTS = ("int64",)

    def sizes(self, largest: int) -> list[int]:
        """Return the bytes of the numbers and their copy together."""
        return powers(64 * KIB, min(largest, 64 * MIB), 4)

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Draw random numbers."""
        n = size // 16
        numbers = np.random.default_rng(seed).integers(np.iinfo(variant).max, size=n, dtype=variant)
        copy = np.zeros_like(numbers)

        def call() -> None:
            np.copyto(copy, numbers)
            copy.sort()

        return PreparedCall(call, n / 1e6, lambda: (numbers, copy))


class Triad(Kernel):
    """Memory bandwidth: the triad a <- a + s c over two vectors of float64.

    Each element is two loads and one store, 24 bytes as STREAM counts them (McCalpin 1995). The triad of STREAM writes
    to a third vector, and most machines read its lines before they write them, which STREAM does not count. This kernel
    works in place, so that the counted bytes are the moved bytes. It measures the loop of torch, not the maximum of
    optimized code.

    One native call passes over the vectors several times, so that its own cost is small: `index_add_` adds the row c (a
    repeated view) to the only row of a, once per pass. The overhead of a pass is about 0.1 us, a third of the time of
    the smallest set.
    """

    UNIT = "GB/s"
    MEANING = "a += s c, two loads and a store per element"
    VARIANTS = ("float64",)
    SCALE = 0.5
    MIN_PASSES = 4
    _BYTES_PER_CALL = 8e6

    def sizes(self, largest: int) -> list[int]:
        """Return the bytes of both vectors together."""
        return powers(16 * KIB, largest)

    def prepare(self, variant: str, size: int, seed: int) -> PreparedCall:
        """Create the vectors."""
        n = size // 16
        a = torch.zeros(1, n, dtype=torch.float64)
        c = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        passes = max(self.MIN_PASSES, round(self._BYTES_PER_CALL / (24 * n)))
        to_row, repeated = torch.zeros(passes, dtype=torch.int64), c.expand(passes, n)
        return PreparedCall(
            lambda: a.index_add_(0, to_row, repeated, alpha=self.SCALE),
            24 * passes * n / 1e9,
            lambda: (a[0].numpy(), c.numpy(), passes),
        )


KERNELS: dict[str, Kernel] = {kernel.__name__.lower(): kernel() for kernel in Kernel.__subclasses__()}
