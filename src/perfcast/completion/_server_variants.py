"""What else changes when one characteristic of a server is changed and all the others are held."""

from __future__ import annotations

import pandas as pd

WATTS = ("tdp_w", "chips")
WATTS_ARE = "TDP of the processors alone"

CAPACITIES = {"cores_per_chip_stated": "cores_per_chip_part"}
"""Fewer cores are the part with some of them off; more are another part."""

REPLACED = {
    "cores_per_chip_stated": ("cores_enabled_total",),
    "cores_per_chip_part": ("cores_enabled_total", "cores_per_chip_stated"),
    "cores_enabled_total": ("cores_per_chip_stated",),
    "dimm_count": ("mem_total_gb",),
    "dimm_gb": ("mem_total_gb",),
    "mem_total_gb": ("dimm_gb",),
    "mem_rated_mts": ("mem_running_mts", "mem_eff_mts"),
    "mem_running_mts": ("mem_eff_mts",),
    "mem_max_mts_1dpc": ("mem_eff_mts",),
}
"""Only what arithmetic ties to a column. Cache, power and clocks of a processor stay when its cores vary: what they
would be is for whoever designs it to say."""

ADAPTED = {
    "chips": ("dimm_count",),
    "mem_channels_per_chip": ("dimm_count",),
    "mem_max_mts_1dpc": ("mem_rated_mts", "mem_running_mts"),
    "ddr_gen": ("mem_rated_mts", "mem_running_mts"),
    "isa": ("arch",),
    "test_month": ("hw_avail", "sw_avail"),
    "launch_quarter": ("hw_avail",),
}
"""One module in every channel, as fast as the processor takes, unless the machine's own modules were given."""


def per_processor(frame: pd.DataFrame) -> pd.DataFrame:
    """Say the enabled cores of each processor where only those of all were said.

    Shapes: the answer has the rows and columns of `frame`.
    """
    stated, total = frame["cores_per_chip_stated"], frame["cores_enabled_total"]
    each = total / frame["chips"]
    tells = stated.isna() & each.notna()
    return frame.assign(cores_per_chip_stated=stated.where(~tells, each), cores_enabled_total=total.where(~tells))
