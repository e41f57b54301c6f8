"""The contract of a workload."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from perfcast.microbench.kernels import KERNELS


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
    RESOURCE: ClassVar[str] = "cpu"
    """Resource that it needs most: cpu, cache, memory, disk, network or kernel."""
    DISK_MIB: ClassVar[int] = 0
    """Room that its files need, in MiB."""

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
