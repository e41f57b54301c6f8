"""Generated processors that the generated dumps and the generated catalog share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perfcast.processors.families import facts_of
from perfcast.processors.names import part_key


@dataclass(frozen=True)
class Part:
    """Generated processor. Units: clock MHz; launch is (year, month)."""

    name: str
    cores: int
    mhz: int
    launch: tuple[int, int]

    @cached_property
    def key(self) -> str:
        """Join key of the part."""
        return part_key(self.name)

    @cached_property
    def facts(self) -> dict[str, float | str | None]:
        """Facts of the part from the project's family tables."""
        return facts_of(self.key)

    def number(self, fact: str, default: float) -> float:
        """Return a numerical fact, or the default where the tables lack it."""
        value = self.facts[fact]
        return default if value is None else float(value)

    @property
    def turbo_mhz(self) -> int:
        """Highest clock in MHz."""
        return self.mhz + 1200

    @property
    def tdp_w(self) -> int:
        """Power in W, which grows with cores and clock."""
        return round((40 + 1.1 * self.cores * (self.mhz / 2000) ** 2) / 5) * 5

    @property
    def l3_mb(self) -> int:
        """Last-level cache of the chip in MB."""
        per_core = {"Milan-X": 24, "EPYC 4004": 4}.get(str(self.facts["family"]), 2)
        return self.cores * per_core


def parse_parts(launch: tuple[int, int], names: str) -> list[Part]:
    """Parse 'name:cores:MHz' items separated by commas."""
    items = (item.strip().split(":") for item in names.split(","))
    return [Part(name, int(cores), int(mhz), launch) for name, cores, mhz in items]


def draw_parts(parts: Sequence[Part], random: np.random.Generator) -> Iterator[Part]:
    """Yield parts in random order without end, every part once before any repeats."""
    while True:
        yield from (parts[index] for index in reversed(random.permutation(len(parts))))


PARTS: tuple[Part, ...] = (
    *parse_parts((2017, 6), "Intel Xeon E3-1230 v6:4:3500, SPARC64 XII:12:4250"),
    *parse_parts(
        (2017, 9), "Intel Xeon Silver 4110:8:2100, Intel Xeon Gold 5118:12:2300, Intel Xeon Gold 6130:16:2100"
    ),
    *parse_parts(
        (2017, 9), "Intel Xeon Gold 6148:20:2400, Intel Xeon Gold 6142M:16:2600, Intel Xeon Platinum 8180:28:2500"
    ),
    *parse_parts((2017, 11), "AMD EPYC 7281:16:2100, AMD EPYC 7601:32:2200"),
    *parse_parts((2018, 10), "Intel Xeon E-2124:4:3300, Intel Xeon E-2186G:6:3800"),
    *parse_parts(
        (2019, 4), "Intel Xeon Silver 4210:10:2200, Intel Xeon Gold 5218:16:2300, Intel Xeon Gold 6230:20:2100"
    ),
    *parse_parts(
        (2019, 4), "Intel Xeon Gold 6248:20:2500, Intel Xeon Platinum 8260:24:2400, Intel Xeon Platinum 8280:28:2700"
    ),
    *parse_parts(
        (2019, 8), "AMD EPYC 7302:16:3000, AMD EPYC 7452:32:2350, AMD EPYC 7742:64:2250, AMD EPYC 7F52:16:3500"
    ),
    *parse_parts((2019, 9), "Intel Xeon E-2236:6:3400, Intel Xeon E-2288G:8:3700"),
    *parse_parts((2020, 9), "Intel Xeon Platinum 8380H:28:2900, Ampere Altra Q80-30:80:3000"),
    *parse_parts((2021, 3), "AMD EPYC 7313:16:3000, AMD EPYC 7543P:32:2800, AMD EPYC 7763:64:2450"),
    *parse_parts(
        (2021, 4), "Intel Xeon Silver 4314:16:2400, Intel Xeon Gold 6330:28:2000, Intel Xeon Platinum 8380:40:2300"
    ),
    *parse_parts((2021, 9), "Intel Xeon E-2388G:8:3200"),
    *parse_parts((2022, 3), "AMD EPYC 7573X:32:2800, Quantum Core X1:48:2600"),
    *parse_parts((2022, 11), "AMD EPYC 9124:16:3000, AMD EPYC 9354:32:3250, AMD EPYC 9654:96:2400"),
    *parse_parts(
        (2023, 1), "Intel Xeon Silver 4410Y:12:2000, Intel Xeon Gold 6430:32:2100, Intel Xeon Gold 6448Y:32:2100"
    ),
    *parse_parts(
        (2023, 1), "Intel Xeon Platinum 8468:48:2100, Intel Xeon Platinum 8480+:56:2000, Intel Xeon Max 9468:48:2100"
    ),
    *parse_parts((2023, 6), "AMD EPYC 9754:128:2250, AMD EPYC 8324P:32:2650"),
    *parse_parts(
        (2023, 12), "Intel Xeon Gold 6534:8:3900, Intel Xeon Gold 6530:32:2100, Intel Xeon Platinum 8592+:64:1900"
    ),
    *parse_parts((2024, 5), "AMD EPYC 4564P:16:4500, Intel Xeon 6780E:144:2200"),
    *parse_parts((2024, 9), "AMD EPYC 9755:128:2700, AMD EPYC 9965:192:2250, Intel Xeon 6980P:128:2000"),
)
"""Parts in order of launch, with names of real families, so that naming rules and family tables apply."""
