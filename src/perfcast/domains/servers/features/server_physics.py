"""Physical quantities of a server that feature modules and analytical models share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from perfcast.features.feature_math import positive, ratio

BYTES_PER_TRANSFER = 8
"""A DDR channel is 64 data bits wide; DDR5's two half channels of 32 bits add up to the same."""

POWER_CLOCK_MHZ = 1500.0
"""Clock that one watt per core sustains. Units: MHz.

Source: data sheets alone, no benchmark result. It is the median, rounded, of published all-core turbo clocks divided by
the cube root of TDP per core, for server CPUs launched up to mid-2017 (Xeon E5-2680 v4: 2.9 GHz, 120 W, 14 cores: 1417;
E5-2697A v4: 3.1, 145, 16: 1487; E5-2699 v4: 2.8, 145, 22: 1493; EPYC 7601: 2.7, 180, 32: 1518; Xeon Platinum 8180: 3.2,
205, 28: 1648).
"""

SOFTMIN_POWER = 8.0
"""Sharpness of the soft minimum of both clocks; for equal clocks it returns 92 % of either."""


Arrays = Mapping[str, np.ndarray]
"""Columns of a table by name, (n,) each."""


def channels_populated(frame: Arrays) -> np.ndarray:
    """Return the memory channels with at least one DIMM, when DIMMs are spread as evenly as they can be."""
    populated: np.ndarray = np.minimum(frame["dimm_count"], frame["chips"] * frame["mem_channels_per_chip"])
    return populated


def mem_gbps_total(frame: Arrays) -> np.ndarray:
    """Return the peak bandwidth of all DDR channels in GB/s (10^9 bytes per second).

    Missing for a machine without DIMMs: its memory is in the package (HBM), and its bandwidth is not stated.
    """
    bandwidth: np.ndarray = positive(channels_populated(frame)) * frame["mem_eff_mts"] * BYTES_PER_TRANSFER / 1000
    return bandwidth


def power_clock_mhz(frame: Arrays) -> np.ndarray:
    """Return the clock that all cores can hold: the soft minimum of the turbo clock and what the power allows.

    Power grows with clock x voltage^2, and voltage nearly with the clock, so the clock that a power budget sustains
    grows with the cube root of watts per core (Mudge, "Power: a first-class architectural design constraint", 2001).
    """
    watts = ratio(frame["tdp_w"], frame["cores_per_chip_of_cpu_model"])
    allowed = POWER_CLOCK_MHZ * positive(watts) ** (1 / 3)
    turbo = positive(frame["max_turbo_mhz"])
    slower = np.minimum(turbo, allowed)
    # The power mean of order -8, written so that nothing overflows.
    clock: np.ndarray = slower * (1 + (slower**2 / (turbo * allowed)) ** SOFTMIN_POWER) ** (-1 / SOFTMIN_POWER)
    return clock


def log_power_clock(log_turbo: np.ndarray, log_watts_per_core: np.ndarray) -> np.ndarray:
    """Return the logarithm of `power_clock_mhz`; where one limit is unknown, the result is.

    Shapes: all of one shape. Units: logarithms of MHz and of watts.
    """
    allowed = np.log(POWER_CLOCK_MHZ) + log_watts_per_core / 3
    slower = np.fmin(log_turbo, allowed)
    softened: np.ndarray = slower - np.log1p(np.exp(-SOFTMIN_POWER * np.abs(log_turbo - allowed))) / SOFTMIN_POWER
    return softened


def flops_per_cycle(frame: Arrays) -> np.ndarray:
    """Return double-precision operations per cycle and core: 64-bit lanes x units x 2 (multiply and add)."""
    operations: np.ndarray = frame["simd_bits"] / 64 * frame["fma_units"] * 2
    return operations


def find_memory_limit(machines: Mapping[str, Any] | pd.DataFrame, rate: Any) -> np.ndarray:
    """Return the highest memory rate that the processor drives, for modules of a stated or rated `rate`.

    A rate above that of one DIMM per channel is one of multiplexed-rank DIMMs, where the processor takes them. With two
    DIMMs per channel and no stated rate, the slower limit counts. Units: MT/s; missing where it is not known. A table
    without the columns of both limits, such as that of an older champion, has the first limit alone.
    Shapes: `machines` has columns by name, a frame or arrays, (n,) each; rate (n,) -> (n,).
    """

    def column(name: str) -> np.ndarray:
        return np.asarray(machines[name], dtype=float)

    limit = column("mem_max_mts_1dpc")
    if "mem_mrdimm_mts" not in machines or "mem_max_mts_2dpc" not in machines:
        return limit
    multiplexed = column("mem_mrdimm_mts")
    limit = np.where(
        (np.asarray(rate, dtype=float) > limit) & ~np.isnan(multiplexed),
        multiplexed,
        limit,
    )
    doubled = column("dimm_count") > column("chips") * column("mem_channels_per_chip")
    two_per_channel = column("mem_max_mts_2dpc")
    slower = doubled & np.isnan(column("mem_running_mts")) & (two_per_channel < limit)
    return np.where(slower, two_per_channel, limit)
