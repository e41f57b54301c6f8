"""Results that cannot be what their machine scores: known by results of the same machine, never by a forecast."""

from __future__ import annotations

import numpy as np
import pandas as pd

MIN_SHARE = 2 / 3
"""Share of its peers' median that a score must reach. Among the published results none of the same peers is as far
above the median as this is below it: what is so far down is a mistyped score or a machine that was held back.
Their errors are a hundred times the usual ones and would decide a mean."""

MIN_PEERS = 5


def far_below_peers(frame: pd.DataFrame) -> pd.Series:
    """Mark scores below two thirds of the median of at least five results of the same suite, part, chips and memory.

    Memory is the same where as many channels are filled at the same rate: half the channels explain half a score.
    """
    channels = frame["mem_channels_per_chip"] * frame["chips"]
    same = frame[["suite", "part_key", "chips", "mem_eff_mts", "base_score"]]
    same = same.assign(filled=np.fmin(frame["dimm_count"], channels))
    peers = same.groupby(["suite", "part_key", "chips", "mem_eff_mts", "filled"], dropna=False)["base_score"]
    enough = peers.transform("size") >= MIN_PEERS
    return enough & (frame["base_score"] < MIN_SHARE * peers.transform("median"))
