"""Description of the machine of generated measurements."""

from __future__ import annotations

MACHINE = {
    "architecture": "x86_64",
    "cores": 4,
    "cpu_model": "Generated Processor 1000",
    "cpu_vendor": "Generated",
    "flags": ["avx2", "fma"],
    "kernel": "6.1.0",
    "l1d_kib": 192.0,
    "l1i_kib": 128.0,
    "l2_kib": 8192.0,
    "l3_kib": 32768.0,
    "memory_gib": 15.6,
    "sockets": 1,
    "threads_per_core": 1,
    "versions": {"numpy": "2.0.0", "python": "3.11.0", "torch": "2.13.0"},
    "virtual": None,
}
