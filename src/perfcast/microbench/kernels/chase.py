"""Memory latency: a chain of dependent loads that visits every cache line of a set once per lap.

The chain runs in numpy's compiled `take`, which copies links[index[i]] to out[i]. `out` is `index` shifted by one: each
step writes the index that the next step reads, so that no step can start before the previous one has ended. The lines
form one cycle in random order, which no prefetcher can follow.

The result also includes a store, its forwarding to the next step and a bounds check (1 to 2 ns together at every size;
the smallest set, which fits into the L1 cache, shows load and loop together). It includes address translation (TLB
misses beyond some MiB; numpy requests huge pages from 4 MiB on) and the index, an eighth of a line per step, read and
written in order. A set that fits into a shared cache is read from memory when other sets evict it within a lap.

numpy does not define `take` for overlapping arguments. If it copied them, there would be no chain. The first call is
therefore checked step by step against the links.
"""

from __future__ import annotations

import numpy as np

from perfcast.microbench.kernels import KIB, PreparedCall, powers
from perfcast.utils.errors import UserError

UNIT = "Maccesses/s"
INVERSE = "ns per access"
MEANING = "dependent loads through a random cycle of cache lines"
READING = "every access includes the loop: the smallest set shows its time together with the L1 cache"
VARIANTS = ("lines",)
SHARED = False
LINE = 64
STEPS = 65536
"""Steps of one call: at least 0.1 ms, much longer than the overhead of a call."""


def sizes(largest: int) -> list[int]:
    """Return the total bytes of the lines."""
    return powers(4 * KIB, largest)


def cycle(lines: int, seed: int) -> np.ndarray:
    """Return links between the first words of `lines` cache lines that form one cycle; the other words are zero."""
    words = LINE // 8
    order = np.random.default_rng(seed).permutation(lines)
    # aligned to a line, so that no node spans two
    buffer = np.zeros((lines + 1) * words, np.intp)
    start = (-buffer.ctypes.data % LINE) // 8
    links = buffer[start : start + lines * words]
    links[words * order] = words * np.roll(order, -1)
    return links


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Link the lines. Raises: UserError when `take` does not follow the links."""
    links = cycle(size // LINE, seed)
    path = np.zeros(STEPS + 1, np.intp)
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
    return PreparedCall(call, STEPS / 1e6, lambda: (path,))
