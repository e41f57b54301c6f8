"""Facts of processors that were public only after the cut of a split."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

from perfcast.domains.servers.features import processor
from perfcast.domains.servers.leakage import check_fact_dates, mask_later_facts, rebuild_features
from perfcast.evaluation.leakage.artifacts import Artifacts
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table

CUT = pd.Timestamp("2023-01-01")
NUMBERS = {
    "base_mhz": 2000.0,
    "max_turbo_mhz": 3700.0,
    "all_core_turbo_mhz": 2800.0,
    "tdp_w": 300.0,
    "cores_per_chip_of_cpu_model": 32.0,
    "l3_mb_per_chip": 64.0,
    "simd_bits": 512.0,
    "fma_units": 2.0,
    "mem_channels_per_chip": 8.0,
    "mem_max_mts_1dpc": 4800.0,
    "mem_max_mts_2dpc": 4400.0,
    "mem_mrdimm_mts": np.nan,
    "mem_rated_mts": 5600.0,
    "mem_running_mts": np.nan,
    "mem_eff_mts": 4800.0,
    "dimm_count": 8.0,
    "chips": 1.0,
}


def standard_table() -> Table:
    """Return six results of Ice Lake before the cut, and six of Sapphire Rapids after it."""
    months = [*pd.date_range("2022-01-01", periods=6, freq="MS"), *pd.date_range("2023-02-01", periods=6, freq="MS")]
    frame = pd.DataFrame({name: [value] * 12 for name, value in NUMBERS.items()}).assign(
        id=[f"r{number}" for number in range(12)],
        family=["Ice Lake-SP"] * 6 + ["Sapphire Rapids"] * 6,
        launch_quarter=[pd.Timestamp("2021-04-01")] * 6 + [pd.Timestamp("2023-01-01")] * 6,
        published=months,
        score=100.0,
    )
    columns = (
        Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("family", Kind.CATEGORICAL, Role.FEATURE, "processor"),
        *(Column(name, Kind.NUMERICAL, Role.FEATURE, "processor") for name in NUMBERS),
        Column("launch_quarter", Kind.DATE, Role.FEATURE, "processor"),
        Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    return build_table("servers", frame, columns, {})


def make_artifacts(table: Table, test: np.ndarray) -> Artifacts:
    """Return artifacts of one forward split without runs."""
    split = pd.DataFrame({"id": table.frame["id"], "fold_0": np.where(test, "test", "train")})
    none = {"runs": (), "control": SimpleNamespace(), "seed": 0}
    given = {"table": processor.derive(table), "standard": table.columns, "splits": {"forward_2023": split}}
    return Artifacts(**given, **none, features=("processor",))


def test_facts_of_later_processors_are_missing_stated_cells_stay_and_features_are_derived_again() -> None:
    table, late = standard_table(), [False] * 6 + [True] * 6
    masked = mask_later_facts(table.frame, CUT)
    for name in ("tdp_w", "all_core_turbo_mhz", "mem_channels_per_chip"):
        assert masked[name].isna().tolist() == late, name
    assert masked["base_mhz"].notna().all()
    # without the processor's limit the rated speed counts
    assert masked["mem_eff_mts"].tolist() == [4800] * 6 + [5600] * 6
    stated = tuple(column.name for column in table.columns)
    rebuilt = rebuild_features(processor.derive(table), stated, ("processor",), CUT)
    assert rebuilt.frame["power_clock_mhz"].isna().tolist() == late


def test_later_facts_are_a_share_of_test_cells_a_finding_in_training_rows_and_nothing_elsewhere() -> None:
    table = standard_table()
    artifacts = make_artifacts(table, np.arange(12) >= 6)
    report = check_fact_dates(artifacts)
    assert report.findings == ()
    assert report.numbers["forward_2023_training_cells_with_later_facts"] == 0
    assert report.numbers["forward_2023_test_cells_with_later_facts"] > 0.3
    late = table.frame.assign(published=table.frame["published"].sort_values(ascending=False).to_numpy())
    turned = make_artifacts(replace(table, frame=late), np.arange(12) < 6)
    assert "training cells" in check_fact_dates(turned).findings[0]
    for without in (replace(artifacts, features=()), replace(artifacts, splits={})):
        assert not check_fact_dates(without).numbers
