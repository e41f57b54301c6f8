"""Memory latency: a chain of loads, each of which needs the one before, through every cache line of a set once a lap.

The chain runs in numpy's compiled `take`, which copies links[index[i]] to out[i]. Here `out` is `index` shifted by one:
what a step writes is the index that the next one reads, so no step can begin before the last has ended. The lines are
linked into one cycle in random order, which no prefetcher follows.

What the number includes beside the load itself: a store and its forwarding to the next step's read and a check of the
index's bounds (1 to 2 ns together, the same at every size; the smallest set, which lies in the first-level cache, shows
what load and loop take together), the translation of the address (TLB misses beyond some MiB, as for any program; numpy
asks for huge pages from 4 MiB on), and the index itself, an eighth of a line per step, read and written in order. A set
that fits into a cache shared with others is read from memory where they evict it within a lap.

numpy does not promise how `take` treats arguments that overlap. Should it copy them one day, there would be no chain:
the first call is therefore checked step by step against the links.
"""

from __future__ import annotations

import numpy as np

from perfcast.errors import UserError
from perfcast.microbench.kernels import KIB, PreparedCall, powers

UNIT = "Maccesses/s"
INVERSE = "ns per access"
MEANING = "dependent loads through a random cycle of cache lines"
READING = "the loop itself is part of every access: the smallest set shows it together with the first-level cache"
VARIANTS = ("lines",)
SHARED = False
LINE = 64
STEPS = 65536
"""Steps of one call: 0.1 ms and more, long beside the cost of a call and of threads taking turns to make one."""


def sizes(largest: int) -> list[int]:
    """Return bytes of the lines that are visited."""
    return powers(4 * KIB, largest)


def cycle(lines: int, seed: int) -> np.ndarray:
    """Return links between the first words of `lines` cache lines that form one cycle; the other words are zero."""
    words = LINE // 8
    order = np.random.default_rng(seed).permutation(lines)
    # from a line's boundary on, so that a node never lies across two
    room = np.zeros((lines + 1) * words, np.intp)
    start = (-room.ctypes.data % LINE) // 8
    links = room[start : start + lines * words]
    links[words * order] = words * np.roll(order, -1)
    return links


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Link the lines and check that `take` follows the links. Raises: UserError when it does not."""
    links = cycle(size // LINE, seed)
    path = np.zeros(STEPS + 1, np.intp)
    index, out = path[:-1], path[1:]

    def call() -> None:
        path[0] = path[-1]
        # mode "wrap": "raise" would copy first, and "clip" puts two more instructions into the chain
        np.take(links, index, out=out, mode="wrap")

    call()
    if not np.array_equal(links[index], out):
        raise UserError(
            "the pointer chase needs a numpy whose take() writes results before it reads the next index",
            f"numpy {np.__version__} does not",
            "leave it out with --kernels",
        )
    return PreparedCall(call, STEPS / 1e6, lambda: (path,))
