"""Variables under which libraries compute the same digits on every processor."""

from __future__ import annotations

import os
from pathlib import Path

_AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4,AVX512_ICL,AVX512_SPR",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
"""Instructions of torch, MKL, NumPy, oneDNN and OpenBLAS."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Threads that share a sum change its order."""


def portable_instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Return variables under which processes compute the same bits on every x86-64 processor with AVX2.

    There are none for other processors. Libraries choose instructions by processor, and so the order of sums: a network
    of another processor would have other errors, and the pinned results would differ from those of a run.
    """
    has_avx2 = cpuinfo.is_file() and " avx2 " in cpuinfo.read_text(encoding="utf-8", errors="replace")
    return _AVX2 if has_avx2 else {}


def fix_digits() -> None:
    """Let libraries that this process imports later compute the same digits on every processor.

    Instructions that the user has chosen stay.
    """
    os.environ.update(ONE_THREAD)
    for name, value in portable_instructions().items():
        os.environ.setdefault(name, value)
