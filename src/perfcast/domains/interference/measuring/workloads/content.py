"""Workloads that process texts and documents."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import Counter

import numpy as np

from perfcast.domains.interference.measuring.workloads.workload import Workload
from perfcast.microbench.kernels import KIB, MIB, Compression


class Compress(Workload):
    """Compression of text with DEFLATE."""

    MEANING = "zlib level 6 of 32 KiB of generated text"

    def prepare(self) -> None:
        """Generate the text."""
        self._text = Compression().text(32 * KIB, self.seed)

    def operate(self) -> None:
        """Compress the text."""
        zlib.compress(self._text, 6)


class Hashing(Workload):
    """Digests of a buffer beyond the second-level cache, as a backup or an object store computes them."""

    MEANING = "SHA-256 of 1 MiB"

    def prepare(self) -> None:
        """Draw the bytes."""
        self._content = np.random.default_rng(self.seed).bytes(MIB)

    def operate(self) -> None:
        """Compute the digest."""
        hashlib.sha256(self._content).digest()


class JsonDocuments(Workload):
    """Parsing and writing of JSON, as most web services do."""

    MEANING = "parse, change and write a JSON document of 100 records"

    def prepare(self) -> None:
        """Generate the document."""
        random = np.random.default_rng(self.seed)
        self._document = json.dumps(
            [
                {
                    "id": number,
                    "name": random.bytes(8).hex(),
                    "tags": [random.bytes(3).hex() for _ in range(5)],
                    "scores": [round(float(value), 6) for value in random.random(10)],
                    "active": bool(number % 3),
                }
                for number in range(100)
            ]
        )

    def operate(self) -> None:
        """Parse the document, sum its scores, and write it again."""
        records = json.loads(self._document)
        for record in records:
            record["total"] = sum(record["scores"])
        json.dumps(records)


class TextIndex(Workload):
    """Text processing with regular expressions and hash tables."""

    MEANING = "split 16 KiB of text into words and count them"

    def prepare(self) -> None:
        """Generate the text."""
        self._text = Compression().text(16 * KIB, self.seed).decode("ascii")
        self._word = re.compile(r"[a-z]{2,}")

    def operate(self) -> None:
        """Count words and list the most frequent ones."""
        Counter(match.group() for match in self._word.finditer(self._text)).most_common(20)
