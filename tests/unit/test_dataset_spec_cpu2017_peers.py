"""Which results are too far below those of the same machine to judge a forecast by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.datasets._spec_cpu2017_peers import MIN_PEERS, far_below_peers


def results(scores: list[float], **columns: object) -> pd.DataFrame:
    same = {
        "suite": "CINT2017rate",
        "part_key": "epyc 7742",
        "chips": 2.0,
        "dimm_count": 16.0,
        "mem_channels_per_chip": 8.0,
        "mem_eff_mts": 3200.0,
    }
    return pd.DataFrame({"base_score": scores, **same, **columns})


def test_a_third_below_five_peers_is_far_and_above_is_not() -> None:
    assert far_below_peers(results([600, 610, 620, 390, 1500])).tolist() == [False, False, False, True, False]
    assert not far_below_peers(results([600, 610, 620, 450, 605])).any()


def test_few_peers_decide_nothing() -> None:
    assert not far_below_peers(results([*[600] * (MIN_PEERS - 2), 100])).any()


@pytest.mark.parametrize(
    "column", ["suite", "part_key", "chips", "dimm_count", "mem_eff_mts"], ids=lambda name: f"another {name}"
)
def test_another_machine_is_no_peer(column: str) -> None:
    frame = results([600, 610, 620, 630, 640, 100])
    other = "other" if isinstance(frame[column].iloc[0], str) else 1.0
    frame[column] = np.where(np.arange(6) == 5, other, frame[column])
    assert not far_below_peers(frame).any()


def test_unknown_memory_is_compared_with_unknown_memory() -> None:
    frame = results([600, 610, 620, 630, 640, 100], dimm_count=np.nan, mem_eff_mts=np.nan)
    assert far_below_peers(frame).tolist() == [False] * 5 + [True]
