"""Generated dump of SPECpower_ssj2008 results; operations and watts follow simple formulas with noise."""

from __future__ import annotations

import numpy as np

from perfcast.domains.servers.datasets.spec_java.power import LOADS
from perfcast.domains.servers.testing.generated_dumps import GeneratedDump, Machine, draw_nodes
from perfcast.domains.servers.testing.generated_rows import Values


def _draw(machine: Machine, suite: str, number: int, random: np.random.Generator) -> Values:
    described = draw_nodes(
        machine,
        int(random.choice([1, 2, 4], p=[0.8, 0.1, 0.1])),
        random,
    )
    nodes = described["nodes"]
    dimms = described["dimms"]
    tdp_w = machine.cpu_model.tdp_w * machine.chips
    noise = np.exp(random.normal(0, 0.02, 3))
    full = 9e3 * machine.cores * machine.cpu_model.turbo_mhz / 1000 * 1.07**machine.growth * noise[0] * nodes
    peak = (1.1 * tdp_w + 4 * dimms + 20) * noise[1] * nodes
    idle = (0.2 * tdp_w + 2 * dimms + 15) * noise[2] * nodes
    operations = [full * load / 100 for load in LOADS]
    watts = [idle + (peak - idle) * load / 100 for load in (*LOADS, 0)]
    supply_w = round(peak * 1.6 / 100) * 100 + 100
    result = sum(operations) / sum(watts)
    return {
        **described,
        "operations": operations,
        "watts": watts,
        "result": result,
        "supply_w": supply_w,
    }


_MONTHS = 2017 * 12 + 5, 2023 * 12 + 4
DUMP = GeneratedDump("power_ssj2008-results.csv", ("power_ssj2008",), _MONTHS, _draw)
FILE = DUMP.file
write = DUMP.write
