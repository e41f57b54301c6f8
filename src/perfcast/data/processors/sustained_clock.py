"""Clock that all cores of a server CPU can hold, used by feature groups and analytical models.

Power grows with clock x voltage^2, and voltage nearly with the clock, so the clock that a power budget sustains grows
with the cube root of watts per core (Mudge, "Power: a first-class architectural design constraint", 2001).
"""

from __future__ import annotations

import numpy as np

POWER_CLOCK_MHZ = 1500.0
"""Clock that one watt per core sustains. Units: MHz.

Source: data sheets alone, no benchmark result. It is the median, rounded, of published all-core turbo clocks divided by
the cube root of TDP per core, for server CPUs launched up to mid-2017 (Xeon E5-2680 v4: 2.9 GHz, 120 W, 14 cores: 1417;
E5-2697A v4: 3.1, 145, 16: 1487; E5-2699 v4: 2.8, 145, 22: 1493; EPYC 7601: 2.7, 180, 32: 1518; Xeon Platinum 8180: 3.2,
205, 28: 1648).
"""

SOFTMIN_POWER = 8.0
"""Sharpness of the soft minimum of both clocks; for equal clocks it returns 92 % of either."""


def log_power_clock(log_turbo: np.ndarray, log_watts_per_core: np.ndarray) -> np.ndarray:
    """Return the logarithm of the clock that all cores can hold, the soft minimum of turbo and what the power allows.

    Shapes: all of one shape; where one limit is unknown, the result is.
    Units: logarithms of MHz and of watts.
    """
    allowed = np.log(POWER_CLOCK_MHZ) + log_watts_per_core / 3
    slower = np.fmin(log_turbo, allowed)
    softened: np.ndarray = slower - np.log1p(np.exp(-SOFTMIN_POWER * np.abs(log_turbo - allowed))) / SOFTMIN_POWER
    return softened
