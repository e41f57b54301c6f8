"""The memory rate that a processor drives: one DIMM per channel, two, and multiplexed-rank DIMMs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.features.server_physics import find_memory_limit


@pytest.mark.parametrize(
    ("rate", "running", "dimms", "limit"),
    [
        (6400, np.nan, 16, 6400),
        (8800, np.nan, 16, 8000),
        (8000, 8000, 16, 8000),
        (6400, np.nan, 32, 5200),
        (6400, 6400, 32, 6400),
        (4800, np.nan, 16, 6400),
    ],
)
def test_limit_of_a_processor_with_multiplexed_rank_dimms(
    rate: float, running: float, dimms: float, limit: float
) -> None:
    facts = {"mem_max_mts_1dpc": 6400.0, "mem_max_mts_2dpc": 5200.0, "mem_mrdimm_mts": 8000.0}
    machine = {"chips": 2, "mem_channels_per_chip": 8, "dimm_count": dimms, "mem_running_mts": running}
    frame = pd.DataFrame([{**facts, **machine}])
    assert find_memory_limit(frame, pd.Series([float(rate)])).tolist() == [limit]


def test_without_such_dimms_a_higher_rate_is_limited() -> None:
    facts = {"mem_max_mts_1dpc": 4800.0, "mem_max_mts_2dpc": np.nan, "mem_mrdimm_mts": np.nan}
    machine = {"chips": 1, "mem_channels_per_chip": 8, "dimm_count": 16, "mem_running_mts": np.nan}
    assert find_memory_limit(pd.DataFrame([{**facts, **machine}]), pd.Series([5600.0])).tolist() == [4800]
