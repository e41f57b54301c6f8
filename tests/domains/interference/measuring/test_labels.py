"""Labels against references, rejections, the compact table and the quality report."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interference_records import find_run, make_record

from perfcast.domains.interference.measuring import campaign
from perfcast.domains.interference.measuring.labels import label_record, read_reference

PAIR, TRIPLE = find_run("pair"), find_run("triple")


def together(run, second):
    return run.together[0] <= second < run.together[1]


def label(run, rate=lambda tenant, second: 100.0, **changes):
    return label_record(make_record(run, rate, **changes).to_json())


def test_half_of_the_throughput_is_a_degradation_of_one_half():
    frame = label(PAIR, lambda tenant, second: 50.0 if together(PAIR, second) else 100.0)
    rows = frame[frame["phase"] == "together"]
    assert len(rows) == 2 * (PAIR.together[1] - PAIR.together[0])
    assert rows["degradation"].tolist() == pytest.approx([0.5] * len(rows))
    assert rows["degradation_p99"].tolist() == pytest.approx([0.5] * len(rows))
    assert frame.loc[frame["phase"] == "alone", "degradation"].abs().max() < 1e-9
    assert (frame["rejected"] == "").all()


def test_a_linear_drift_of_the_machine_is_divided_out():
    frame = label(TRIPLE, lambda tenant, second: (0.7 if together(TRIPLE, second) else 1.0) * (1000 + 0.5 * second))
    rows = frame[frame["phase"] == "together"]
    assert rows["degradation"].tolist() == pytest.approx([0.3] * len(rows), abs=1e-3)


def test_references_that_differ_reject_only_their_tenant():
    last = PAIR.together[1]
    frame = label(PAIR, lambda tenant, second: 110.0 if tenant == 0 and second >= last else 100.0)
    assert set(frame.loc[frame["tenant"] == 0, "rejected"]) == {"reference"}
    assert set(frame.loc[frame["tenant"] == 1, "rejected"]) == {""}
    assert frame.loc[frame["tenant"] == 0, "reference_spread"].iloc[0] == pytest.approx(10 / 105)


def test_late_samples_and_steal_are_rejected():
    assert set(label(PAIR, late=0.5)["rejected"]) == {"late"}
    assert set(label(PAIR, late=0.5, steal=0.2)["rejected"]) == {"late+steal"}


def test_a_tenant_without_a_report_has_no_throughput_and_no_steady_reference():
    record = make_record(PAIR).to_json()
    record["reports"][1] = [entry for entry in record["reports"][1] if entry["second"] < PAIR.together[1]]
    frame = label_record(record)
    assert set(frame.loc[frame["tenant"] == 1, "rejected"]) == {"reference"}


def test_few_operations_have_no_tail_latency():
    frame = label(PAIR, lambda tenant, second: 5.0)
    assert frame["latency_p99"].isna().all()
    assert frame["degradation"].notna().all()


def test_rows_name_their_neighbors():
    frame = label(TRIPLE)
    rows = frame[(frame["phase"] == "together") & (frame["tenant"] == 0)]
    assert set(rows["aggressors"]) == {"+".join(sorted(TRIPLE.workloads[1:]))}
    assert set(rows["aggressor_count"]) == {2}
    alone = frame[frame["phase"] == "alone"]
    assert set(alone["aggressors"]) == {""}
    assert alone["aggressor_intensity"].isna().all()


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.integers(0, 20), st.floats(0, 1e6) | st.just(math.nan), max_size=20))
def test_a_reference_lies_within_its_values(values):
    reference = read_reference(values, [(0, 5), (15, 20)])
    finite = [value for value in values.values() if math.isfinite(value)]
    for second in (0, 10, 20):
        if reference.values:
            assert min(finite) <= reference.at(second) <= max(finite)
        else:
            assert math.isnan(reference.at(second))


def test_metrics_are_rounded_and_constant_ones_dropped():
    compact, dropped = campaign.compact_metrics(label(TRIPLE))
    metrics = [name for name in compact if name in ("stat.ctxt", "copy", "same", "rare")]
    assert sorted(metrics) == ["copy", "rare", "stat.ctxt"]
    assert dropped == {"metrics": 3, "constant_metrics": 3}
    assert compact["rare"].isna().any()
    assert compact["rare"].dtype == np.float32


def test_absence_is_never_zero():
    compact, _ = campaign.compact_metrics(label(TRIPLE))
    assert compact.loc[compact["tenant"] == 0, "rare"].isna().all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12) | st.just(math.nan), min_size=1, max_size=20))
def test_rounding_keeps_three_digits(values):
    rounded = campaign.round_digits(pd.Series(values)).to_numpy(float)
    for value, short in zip(values, rounded, strict=True):
        assert math.isnan(short) if math.isnan(value) else short == pytest.approx(value, rel=6e-3, abs=1e-30)


def test_quality_is_json_and_tells_rejections():
    noisy = label(PAIR, lambda tenant, second: 100.0 + 2 * (second % 2))
    other = label(PAIR, lambda tenant, second: 120.0, late=0.5, steal=0.2).assign(run=99)
    rows = pd.concat([noisy, other], ignore_index=True)
    quality = campaign.summarize_quality(rows)
    json.dumps(quality, allow_nan=False)
    assert quality["rows"] == 2 * len(noisy)
    assert quality["accepted_rows"] == len(noisy)
    assert quality["rejected"] == {"late": len(noisy), "steal": len(noisy)}


def test_table_and_description_are_written_and_the_same_twice(tmp_path, monkeypatch):
    compact, dropped = campaign.compact_metrics(label(TRIPLE))
    quality = {"design": {"workloads": ["sort"]}, **dropped}
    for folder in ("a", "b"):
        campaign.write_table(tmp_path / folder, compact, quality)
    first, second = (tmp_path / folder / "host_interference.parquet" for folder in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    pd.testing.assert_frame_equal(pd.read_parquet(first), compact)
    written = json.loads(first.with_suffix(".json").read_text())
    assert written["workloads"]["sort"].startswith("sort of")
    assert "cpu_model" in written
