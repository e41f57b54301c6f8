"""Mark of implausibly low scores: results of the same machine decide, never a prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd

MIN_SHARE = 2 / 3
"""Smallest plausible share of the peers' median score.

No published result is as far above the median of its peers as this share is below it. A lower score is mistyped or
comes from a throttled machine. Its error is a hundred times the usual one and would dominate a mean."""

MIN_PEERS = 5


def mark_far_below_peers(frame: pd.DataFrame) -> pd.Series:
    """Mark scores below MIN_SHARE of the median of at least MIN_PEERS results of one suite, part, chips and memory.

    Memory is the same where the number of filled channels and the rate are: half the channels explain half a score.
    """
    channels = frame["mem_channels_per_chip"] * frame["chips"]
    same = frame[["suite", "part_key", "chips", "mem_eff_mts", "base_score"]]
    same = same.assign(filled=np.fmin(frame["dimm_count"], channels))
    peers = same.groupby(["suite", "part_key", "chips", "mem_eff_mts", "filled"], dropna=False)["base_score"]
    enough = peers.transform("size") >= MIN_PEERS
    return enough & (frame["base_score"] < MIN_SHARE * peers.transform("median"))
