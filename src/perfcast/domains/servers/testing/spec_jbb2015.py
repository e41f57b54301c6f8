"""Generated dump of SPECjbb2015 results; the throughputs follow a simple formula with noise."""

from __future__ import annotations

import numpy as np

from perfcast.domains.servers.testing.generated_dumps import GeneratedDump, Machine, draw_nodes
from perfcast.domains.servers.testing.generated_rows import Values


def _draw(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Values:
    kind = str(random.choice(["JBB2015MULTI", "JBB2015COMP", "JBB2015DIST"], p=[0.5, 0.3, 0.2]))
    described = draw_nodes(machine, 4 if kind == "JBB2015DIST" and random.random() < 0.3 else 1, random)
    noise = np.exp(random.normal(0, 0.03, 2))
    base = 900 * machine.cores**0.9 * machine.cpu_model.turbo_mhz / 1000 * 1.06**machine.growth * described["nodes"]
    highest = base * (0.8 if kind == "JBB2015COMP" else 1.0) * noise[0]
    return {**described, "kind": kind, "highest": highest, "critical": highest * min(0.98, 0.6 * float(noise[1]))}


DUMP = GeneratedDump("jbb2015-results.csv", ("jbb2015",), (2017 * 12 + 5, 2024 * 12 + 11), _draw)
FILE, write = DUMP.file, DUMP.write
