"""Counted repairs of the dumps' known errors, and the flags of the leakage check. No repair depends on a score."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.parsing.distinct_texts import map_distinct

MIN_SHARE = 2 / 3
"""Smallest plausible share of the peers' median score.

No published result is as far above the median of its peers as this share is below it. A lower score is mistyped or
comes from a throttled machine. Its error is a hundred times the usual one and would dominate a mean."""

MIN_PEERS = 5

_ISA_OF_SHARED_NAMES = ("power", "sparc")

_FAMILIES_OF_MODULES = ("Sierra Forest", "Sierra Forest-AP", "Clearwater Forest")
_CORES_OF_A_MODULE = 4
"""Cores that share a second-level cache in these families; some results state the module's size per core."""

_FAR_SCORE = 0.3
_ARCHITECTURE = {"x86": "x86_64", "arm": "aarch64"}


class Repairs:
    """Counter of the rows that each rule changes."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def put(
        self,
        frame: pd.DataFrame,
        column: str,
        where: pd.Series,
        value: pd.Series | float,
        rule: str,
    ) -> None:
        """Set `column` where `where` holds, in place, and count the rows under the rule's name."""
        values = pd.Series(value, index=frame.index) if np.isscalar(value) else value
        frame[column] = frame[column].mask(where, values)
        self.counts[rule] = self.counts.get(rule, 0) + int(where.sum())


def find_modal_cores(frame: pd.DataFrame) -> pd.Series:
    """Return the cores per chip of each row's CPU model: of the table of models, else its most frequent value.

    Ties go to the largest. A POWER or SPARC name covers several models with different numbers of cores, so the stated
    number is used.
    """
    counts = frame.groupby(["cpu_model", "cores_per_chip_stated"]).size().rename("rows").reset_index()
    counts["cpu_model"] = counts["cpu_model"].astype("str")
    ordered = counts.sort_values(["cpu_model", "rows", "cores_per_chip_stated"])
    best = ordered.drop_duplicates("cpu_model", keep="last")
    frequent = best.set_index("cpu_model")["cores_per_chip_stated"]
    modal = map_distinct(frame["cpu_model"], frequent.get)
    cores = modal.mask(frame["listed_cores"].notna(), frame["listed_cores"])
    return cores.mask(frame["isa"].isin(_ISA_OF_SHARED_NAMES), frame["cores_per_chip_stated"])


def repair_cores(frame: pd.DataFrame, repairs: Repairs) -> None:
    """Add the total of enabled cores, corrected where the stated number is impossible, and its flag.

    A number above the cores of the CPU model counts threads or is a typing error. A smaller one is an error on a rate
    run, which uses all cores. On a speed run it stands, because firmware can disable cores.
    """
    usual = frame["cores_per_chip_of_cpu_model"]
    stated = frame["cores_per_chip_stated"]
    frame["cores_enabled_total"] = frame["cores"]
    frame["q_cores_mismatch"] = (stated != usual).astype("float64")
    right = usual * frame["chips"]
    repairs.put(frame, "cores_enabled_total", stated > usual, right, "cores_above_cpu_model")
    repairs.put(
        frame,
        "cores_enabled_total",
        (stated < usual) & (frame["metric"] == "rate"),
        right,
        "cores_below_cpu_model_rate",
    )


def repair_caches(frame: pd.DataFrame, repairs: Repairs) -> None:
    """Convert caches to one scope: second level per core, third level per chip and per slice."""
    cores = frame["cores_per_chip_of_cpu_model"]
    module = frame["family"].isin(_FAMILIES_OF_MODULES) & (frame["l2_kb_per_core"] == 4096)
    repairs.put(frame, "l2_kb_per_core", module, frame["l2_kb_per_core"] / _CORES_OF_A_MODULE, "l2_per_module")
    shared = frame["l2_kb_per_core"].isna() & (frame["l2_scope"] == "chip")
    repairs.put(frame, "l2_kb_per_core", shared, frame["l2_kb"] / cores, "l2_chip_to_core")
    slices = cores / frame["l3_cores_per_slice"]
    whole = frame["l3_mb_per_chip"].isna() & frame["l3_slice_mb"].notna() & slices.notna()
    repairs.put(frame, "l3_mb_per_chip", whole, frame["l3_slice_mb"] * slices, "l3_slice_to_chip")
    undivided = frame["l3_slice_mb"].isna() & frame["l3_mb_per_chip"].notna()
    frame["l3_slice_mb"] = frame["l3_slice_mb"].mask(undivided, frame["l3_mb_per_chip"])
    frame["l3_cores_per_slice"] = frame["l3_cores_per_slice"].mask(undivided, cores)


def repair_memory(frame: pd.DataFrame, repairs: Repairs) -> None:
    """Correct the unit of the capacity and the DDR generation; limit the effective rate to the processor's."""
    total = frame["mem_total_gb"]
    sum_gb = frame["mem_sum_gb"]
    frame["q_mem_arith"] = (total.notna() & sum_gb.notna() & (total != sum_gb)).astype("float64")
    repairs.put(frame, "mem_total_gb", sum_gb == total * 1024, sum_gb, "capacity_mb_for_gb")
    repairs.put(frame, "mem_total_gb", total.isna() & sum_gb.notna(), sum_gb, "capacity_from_dimms")

    expected = frame["family_ddr_gen"]
    misprinted = frame["Memory"].str.contains("PC4-", regex=False) & (frame["ddr_gen"] == 5)
    other = frame["ddr_gen"].notna() & expected.notna() & (frame["ddr_gen"] != expected)
    frame["q_ddr_gen"] = (misprinted | other).astype("float64")
    repairs.counts["ddr_gen_from_rate"] = int(misprinted.sum())
    repairs.put(frame, "ddr_gen", other, expected, "ddr_gen_from_family")

    limit = pd.Series(find_memory_limit(frame, frame["mem_eff_mts"]), frame.index)
    repairs.put(frame, "mem_eff_mts", frame["mem_eff_mts"] > limit, limit, "rate_capped_at_processor_limit")


def repair_dates(frame: pd.DataFrame, repairs: Repairs) -> None:
    """Remove test months and arrival days after the month of publication."""
    end = frame["published_month"] + pd.offsets.MonthBegin(1)
    dates = [column for column in ("test_month", "arrival_day") if column in frame]
    late = {column: frame[column] >= end for column in dates}
    frame["q_date"] = pd.DataFrame(late).any(axis=1).astype("float64")
    for column in dates:
        frame[column] = frame[column].mask(late[column])
        repairs.counts[f"{column}_after_publication"] = int(late[column].sum())


def repair_unstated(frame: pd.DataFrame, repairs: Repairs) -> None:
    """Replace zeros that mean 'not stated' by missing values, and fill what the processor implies."""
    if "peak_score" in frame:
        frame["peak_score"] = frame["peak_score"].where(frame["peak_score"] > 0)
    if "energy_base" in frame:
        # A few rows state 1 instead of a measured energy ratio; measured ratios are larger.
        frame["energy_base"] = frame["energy_base"].where(frame["energy_base"] > 1)
    unstated = frame["arch"].isna() & frame["isa"].isin(_ARCHITECTURE)
    frame["arch"] = frame["arch"].astype("str")
    implied = map_distinct(frame["isa"], _ARCHITECTURE.get).astype("str")
    repairs.put(frame, "arch", unstated, implied, "arch_from_isa")
    below = frame["max_turbo_mhz"] < frame["base_mhz"]
    repairs.put(frame, "max_turbo_mhz", below, frame["base_mhz"], "turbo_below_base")


def add_flags(frame: pd.DataFrame) -> None:
    """Add the leakage check flags that compare rows; they are provenance, never features."""
    frame["q_peak_lt_base"] = (frame["peak_score"] < frame["base_score"]).astype("float64")
    same = ["suite", "hw_vendor", "System", "cpu_model", "base_score", "peak_score", "published_month"]
    frame["q_near_dup"] = frame.duplicated(same).astype("float64")
    peers = frame.groupby(["cpu_model", "chips", "suite"])["base_score"]
    residual = pd.Series(np.log(frame["base_score"] / peers.transform("median")), index=frame.index)
    frame["q_far_below_peers"] = mark_far_below_peers(frame).astype("float64")
    frame["q_score_residual"] = ((residual.abs() > _FAR_SCORE) & (peers.transform("size") >= MIN_PEERS)).astype(
        "float64"
    )


def mark_far_below_peers(frame: pd.DataFrame) -> pd.Series:
    """Mark scores below MIN_SHARE of the median of MIN_PEERS or more results of one suite, CPU model, chips and memory.

    Memory is the same where the number of filled channels and the rate are: half the channels explain half a score.
    """
    channels = frame["mem_channels_per_chip"] * frame["chips"]
    same = frame[["suite", "cpu_model", "chips", "mem_eff_mts", "base_score"]]
    same = same.assign(filled=np.fmin(frame["dimm_count"], channels))
    peers = same.groupby(
        [
            "suite",
            "cpu_model",
            "chips",
            "mem_eff_mts",
            "filled",
        ],
        dropna=False,
    )["base_score"]
    enough = peers.transform("size") >= MIN_PEERS
    return enough & (frame["base_score"] < MIN_SHARE * peers.transform("median"))
