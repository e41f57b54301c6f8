"""The memory rate that a processor drives with the modules of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd


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
    limit = np.where((np.asarray(rate, dtype=float) > limit) & ~np.isnan(multiplexed), multiplexed, limit)
    doubled = column("dimm_count") > column("chips") * column("mem_channels_per_chip")
    two_per_channel = column("mem_max_mts_2dpc")
    slower = doubled & np.isnan(column("mem_running_mts")) & (two_per_channel < limit)
    return np.where(slower, two_per_channel, limit)
