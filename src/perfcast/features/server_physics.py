"""Physical quantities that more than one feature module needs, from the standard columns of a server."""

from __future__ import annotations

import pandas as pd

from perfcast.data.processors.sustained_clock import POWER_CLOCK_MHZ, SOFTMIN_POWER

BYTES_PER_TRANSFER = 8
"""A DDR channel is 64 data bits wide; DDR5's two half channels of 32 bits add up to the same."""


def smaller(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return the smaller of two quantities, row by row; missing where either is."""
    return first.where(first <= second, second).where(first.notna())


def channels_populated(frame: pd.DataFrame) -> pd.Series:
    """Return the memory channels with at least one DIMM, when DIMMs are spread as evenly as they can be."""
    return smaller(frame["dimm_count"], frame["chips"] * frame["mem_channels_per_chip"])


def mem_gbps_total(frame: pd.DataFrame) -> pd.Series:
    """Return the peak bandwidth of all DDR channels in GB/s (10^9 bytes per second).

    Missing for a machine without DIMMs: its memory is in the package (HBM), with a bandwidth that nobody stated.
    """
    channels = channels_populated(frame)
    return channels.where(channels > 0) * frame["mem_eff_mts"] * BYTES_PER_TRANSFER / 1000


def power_clock_mhz(frame: pd.DataFrame) -> pd.Series:
    """Return the clock that all cores can hold: the soft minimum of the turbo clock and what the power allows.

    Power grows with clock x voltage^2, and voltage nearly with the clock, so the clock that a power budget sustains
    grows with the cube root of watts per core (Mudge, "Power: a first-class architectural design constraint", 2001).
    """
    watts = frame["tdp_w"] / frame["cores_per_chip_part"].where(frame["cores_per_chip_part"] > 0)
    allowed = POWER_CLOCK_MHZ * watts.where(watts > 0) ** (1 / 3)
    turbo = frame["max_turbo_mhz"].where(frame["max_turbo_mhz"] > 0)
    slower = smaller(turbo, allowed)
    # The power mean of order -8, written so that nothing overflows.
    return slower * (1 + (slower**2 / (turbo * allowed)) ** SOFTMIN_POWER) ** (-1 / SOFTMIN_POWER)


def flops_per_cycle(frame: pd.DataFrame) -> pd.Series:
    """Return double-precision operations per cycle and core: 64-bit lanes x units x 2 (multiply and add)."""
    return frame["simd_bits"] / 64 * frame["fma_units"] * 2
