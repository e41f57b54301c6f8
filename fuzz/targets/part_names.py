"""Names of processors and part numbers of memory modules."""

from __future__ import annotations

from perfcast.domains.servers.datasets.perfcastdb.run_values import decode_part_number, pool_modules
from perfcast.domains.servers.hardware_info import find_cpu_model
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key

SEEDS = [
    b"Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz",
    b"AMD EPYC 9654 96-Core Processor",
    b"Xeon E5-2620v4 (Broadwell) [x], with IPU",
    b"M393A4K40DB2-CVF",
    b"HMAA8GR7CJR4N-XN",
    b"MTC40F2046S1RC48BA1",
]


def check(data: bytes) -> None:
    """Read a name as everything it can be."""
    text = data.decode("utf-8", errors="replace")
    key = cpu_model_key(text)
    if cpu_model_key(key) != key:
        raise AssertionError(f"the key of {key!r} is {cpu_model_key(key)!r}")
    if text.strip() and not key.strip():
        raise AssertionError(f"{text!r} has no key")
    cpu_model_id(key)
    find_cpu_model(text)
    pool_modules([decode_part_number(text), decode_part_number(key)])
