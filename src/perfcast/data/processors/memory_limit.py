"""The memory rate that a processor drives with the modules of a machine."""

from __future__ import annotations

import pandas as pd


def find_memory_limit(frame: pd.DataFrame, rate: pd.Series) -> pd.Series:
    """Return the highest memory rate that the processor drives, for modules of a stated or rated `rate`.

    A rate above that of one DIMM per channel is one of multiplexed-rank DIMMs, where the processor takes them. With two
    DIMMs per channel and no stated rate, the slower limit counts. Units: MT/s; missing where it is not known. A table
    without the columns of both limits, such as that of an older champion, has the first limit alone.
    """
    limit = frame["mem_max_mts_1dpc"]
    if "mem_mrdimm_mts" not in frame or "mem_max_mts_2dpc" not in frame:
        return limit
    multiplexed = frame["mem_mrdimm_mts"]
    limit = limit.mask((rate > limit) & multiplexed.notna(), multiplexed)
    doubled = frame["dimm_count"] > frame["chips"] * frame["mem_channels_per_chip"]
    slower = doubled & frame["mem_running_mts"].isna() & (frame["mem_max_mts_2dpc"] < limit)
    return limit.mask(slower, frame["mem_max_mts_2dpc"])
