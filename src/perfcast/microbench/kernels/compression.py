"""Compression: zlib (DEFLATE, level 6) of generated text, megabytes of text per second.

The text is made of words whose frequencies follow Zipf's law and shrinks to about a third. Which zlib Python was built
with (zlib, zlib-ng) matters as much as the machine.
"""

from __future__ import annotations

import zlib

import numpy as np

from perfcast.microbench.kernels import KIB, MIB, PreparedCall, powers

UNIT = "MB/s"
MEANING = "zlib level 6 of generated text"
VARIANTS = ("text",)
SHARED = True
LEVEL = 6
_WORDS = 5000


def sizes(largest: int) -> list[int]:
    """Return bytes of text: beyond the 32 KiB that DEFLATE looks back, size changes little."""
    return powers(64 * KIB, min(largest, MIB), 4)


def text(size: int, seed: int) -> bytes:
    """Return `size` bytes of lower-case words, the n-th most frequent with probability ~ 1 / n."""
    random = np.random.default_rng(seed)
    letters = random.integers(ord("a"), ord("z") + 1, size=(_WORDS, 10), dtype=np.uint8)
    words = [bytes(row[:length]) for row, length in zip(letters, random.integers(2, 11, size=_WORDS), strict=True)]
    weights = 1 / np.arange(1, _WORDS + 1)
    # a word and its blank have three bytes or more
    drawn = random.choice(_WORDS, size=size // 3 + 1, p=weights / weights.sum())
    return b" ".join(words[i] for i in drawn)[:size]


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Write the text."""
    written = text(size, seed)
    packed: list[bytes] = [b""]

    def call() -> None:
        packed[0] = zlib.compress(written, LEVEL)

    return PreparedCall(call, len(written) / 1e6, lambda: (written, packed[0]))
