"""Workloads of arithmetic units, caches and memory, and those that process texts and documents; their contract."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from abc import ABC, abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from perfcast.microbench.kernels import KERNELS, KIB, MIB, Compression


class Workload(ABC):
    """Work that one tenant repeats: the constructor prepares, `operate` does one operation, `close` frees.

    An operation lasts between a tenth of a millisecond and some ten milliseconds, so that a second has many of them.
    A workload uses one thread, besides a server of its own. Its files stay inside `folder`, which the caller removes.

    Args:
        folder: Empty folder for files of this workload alone.
        seed: Seed of generated contents.
    """

    MEANING: ClassVar[str] = ""
    """One operation, in words; a class without it is no workload but a base."""
    NEEDS_DISK: ClassVar[bool] = False
    """Whether it reads or writes files."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.prepare()

    @classmethod
    def name(cls) -> str:
        """Return the class name with underscores: `KeyValue` is key_value."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    @abstractmethod
    def prepare(self) -> None:
        """Create contents, files and servers."""

    @abstractmethod
    def operate(self) -> None:
        """Do one operation."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what `prepare` started."""


class KernelWorkload(Workload):
    """A kernel of `perfcast measure suite`, with one variant and size."""

    KERNEL: ClassVar[tuple[str, str, int]]
    """Kernel, variant and bytes."""

    def prepare(self) -> None:
        """Create the operands of the kernel."""
        kernel, variant, size = self.KERNEL
        self._call = KERNELS[kernel].prepare(variant, size, self.seed).call

    def operate(self) -> None:
        """Call the kernel once."""
        self._call()


class Sort(KernelWorkload):
    """Sort of random whole numbers in the second-level cache."""

    MEANING = "sort of 32,768 random 64-bit integers"
    KERNEL = ("sort", "int64", 512 * KIB)


class MatrixProduct(KernelWorkload):
    """Dense arithmetic on cached operands."""

    MEANING = "product of two matrices of float64, 209 by 209"
    KERNEL = ("matmul", "float64", MIB)


class Triad(KernelWorkload):
    """Memory bandwidth, beyond the caches of one core."""

    MEANING = "four passes of a += s c over 16 MiB"
    KERNEL = ("triad", "float64", 16 * MIB)


class Chase(KernelWorkload):
    """Memory latency: dependent loads, beyond the caches of one core."""

    MEANING = "65,536 dependent loads of a random cycle in 16 MiB"
    KERNEL = ("chase", "lines", 16 * MIB)


class Fourier(Workload):
    """Complex Fourier transform, whose strides need the second-level cache."""

    MEANING = "Fourier transform of 16,384 complex points"
    POINTS = 2**14

    def prepare(self) -> None:
        """Draw the points."""
        parts = np.random.default_rng(self.seed).standard_normal((self.POINTS, 2))
        self._points = parts.view(np.complex128).ravel()

    def operate(self) -> None:
        """Transform the points."""
        np.fft.fft(self._points)


class Inference(Workload):
    """Inference of a small convolutional network with torch, one image per request."""

    MEANING = "classification of one image of 64 by 64 pixels by a convolutional network"

    def prepare(self) -> None:
        """Create the network with random weights, and an image."""
        torch.manual_seed(self.seed)
        widths = (3, 16, 32, 64)
        blocks = [
            layer
            for before, after in pairwise(widths)
            for layer in (torch.nn.Conv2d(before, after, 3, stride=2, padding=1), torch.nn.ReLU())
        ]
        self._network = torch.nn.Sequential(*blocks, torch.nn.Flatten(), torch.nn.Linear(64 * 8 * 8, 100)).eval()
        self._image = torch.rand(1, 3, 64, 64)

    def operate(self) -> None:
        """Classify the image."""
        with torch.inference_mode():
            self._network(self._image)


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
