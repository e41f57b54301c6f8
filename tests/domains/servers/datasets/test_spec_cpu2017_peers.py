"""Mark of results that are implausibly far below those of the same machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.datasets.spec_cpu.repairs import MIN_PEERS, mark_far_below_peers


def results(scores: list[float], **columns: object) -> pd.DataFrame:
    same = {
        "suite": "CINT2017rate",
        "cpu_model": "epyc 7742",
        "chips": 2.0,
        "dimm_count": 16.0,
        "mem_channels_per_chip": 8.0,
        "mem_eff_mts": 3200.0,
    }
    return pd.DataFrame({"base_score": scores, **same, **columns})


def test_mark_far_below_peers_marks_low_scores_alone() -> None:
    assert mark_far_below_peers(results([600, 610, 620, 390, 1500])).tolist() == [False, False, False, True, False]
    assert not mark_far_below_peers(results([600, 610, 620, 450, 605])).any()


def test_mark_far_below_peers_requires_enough_peers() -> None:
    assert not mark_far_below_peers(results([*[600] * (MIN_PEERS - 2), 100])).any()


@pytest.mark.parametrize(
    "column", ["suite", "cpu_model", "chips", "dimm_count", "mem_eff_mts"], ids=lambda name: f"another {name}"
)
def test_mark_far_below_peers_ignores_other_machines(column: str) -> None:
    frame = results([600, 610, 620, 630, 640, 100])
    other = "other" if isinstance(frame[column].iloc[0], str) else 1.0
    frame[column] = np.where(np.arange(6) == 5, other, frame[column])
    assert not mark_far_below_peers(frame).any()


def test_mark_far_below_peers_compares_unknown_memory_with_itself() -> None:
    frame = results([600, 610, 620, 630, 640, 100], dimm_count=np.nan, mem_eff_mts=np.nan)
    assert mark_far_below_peers(frame).tolist() == [False] * 5 + [True]
