"""Compression: zlib (DEFLATE, level 6) of generated text, in megabytes of text per second.

The text consists of words with a Zipf distribution and shrinks to about a third. The zlib of the Python build (zlib,
zlib-ng) affects the result as much as the machine.
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
    """Return the bytes of text; sizes beyond the DEFLATE window of 32 KiB hardly differ."""
    return powers(64 * KIB, min(largest, MIB), 4)


def text(size: int, seed: int) -> bytes:
    """Return `size` bytes of lower-case words, the n-th most frequent with probability ~ 1 / n."""
    random = np.random.default_rng(seed)
    letters = random.integers(ord("a"), ord("z") + 1, size=(_WORDS, 10), dtype=np.uint8)
    words = [bytes(row[:length]) for row, length in zip(letters, random.integers(2, 11, size=_WORDS), strict=True)]
    weights = 1 / np.arange(1, _WORDS + 1)
    # a word with its blank has at least three bytes
    choices = random.choice(_WORDS, size=size // 3 + 1, p=weights / weights.sum())
    return b" ".join(words[i] for i in choices)[:size]


def prepare(variant: str, size: int, seed: int) -> PreparedCall:
    """Generate the text."""
    content = text(size, seed)
    packed: list[bytes] = [b""]

    def call() -> None:
        packed[0] = zlib.compress(content, LEVEL)

    return PreparedCall(call, len(content) / 1e6, lambda: (content, packed[0]))
