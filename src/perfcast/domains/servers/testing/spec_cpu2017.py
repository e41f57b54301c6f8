"""Generated dump of SPEC CPU2017 results; the scores follow a simple formula with noise."""

from __future__ import annotations

import numpy as np

from perfcast.domains.servers.testing.generated_dumps import GeneratedDump, Machine
from perfcast.domains.servers.testing.generated_rows import Values

_STORAGE = ("1 x 960 GB SATA SSD", "125 GB on tmpfs", "1 x 1.2 TB SAS, 10000 RPM")


def _compute_score(machine: Machine, suite: str, threads: int) -> float:
    """Return the noiseless score from cores, clock, generation, and bandwidth for CFP."""
    cpu_model = machine.cpu_model
    cores = machine.cores
    compute = (cpu_model.mhz + cpu_model.turbo_mhz) / 2000 * 1.05**machine.growth
    bandwidth = cpu_model.number("channels_per_chip", 8) * cpu_model.number("max_mts_1dpc", 3200) * 8e-3 * machine.chips
    if suite.startswith("CFP"):
        compute *= np.sqrt(cpu_model.number("simd_bits", 128) / 256)
    if suite.endswith("rate"):
        throughput = 2.2 * compute * cores * (1.2 if threads > 1 else 1.0)
        return float((throughput**-2 + (1.7 * bandwidth) ** -2) ** -0.5 if suite.startswith("CFP") else throughput)
    return float(
        3.0 * compute * cores**0.08 if suite.startswith("CINT") else 2.5 * compute * (cores * bandwidth) ** 0.25
    )


def draw_scores(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Values:
    """Draw base and peak score, modules and storage."""
    threads = machine.threads_per_core if suite.endswith("rate") else 1
    base = _compute_score(machine, suite, threads) * float(np.exp(random.normal(0, 0.02)))
    peak = base * random.uniform(1.0, 1.06) if random.random() < 0.67 else 0.0
    slots = machine.chips * int(random.choice([1, 2], p=[0.7, 0.3]))
    return {
        **machine.describe(slots * int(machine.cpu_model.number("channels_per_chip", 8))),
        "rate": suite.endswith("rate"),
        "threads": threads,
        "base": float(f"{base:.3g}"),
        "peak": float(f"{peak:.3g}"),
        "storage": str(random.choice(_STORAGE)),
    }


_SUITES = ("CINT2017", "CFP2017", "CINT2017rate", "CFP2017rate")
DUMP = GeneratedDump("cpu2017-results.csv.gz", _SUITES, (2017 * 12 + 5, 2024 * 12 + 11), draw_scores)
FILE = DUMP.file
write = DUMP.write
