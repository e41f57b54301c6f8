"""Labeled seconds to rows: windows, labels, quarantine, columns by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.interference.datasets.host_interference import build, take_windows, window_positions
from perfcast.domains.interference.sources import host_interference as source
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.schema.sequences import to_matrix
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interference")
    generated.write(path, rows=600, seed=2)
    return path


def built(folder: Path, **options: float) -> object:
    return build({"host_interference": folder}, options)


def changed(folder: Path, tmp_path: Path, change) -> Path:
    frame = change(pd.read_parquet(folder / source.TABLE))
    frame.to_parquet(tmp_path / source.TABLE, index=False)
    (tmp_path / source.MACHINE).write_bytes((folder / source.MACHINE).read_bytes())
    return tmp_path


def test_a_window_ends_with_its_second_and_repeats_nothing() -> None:
    seconds = pd.DataFrame(
        {
            "run": [0, 0, 0, 0, 1, 0],
            "attempt": 1,
            "tenant": [0, 0, 0, 1, 0, 0],
            "second": [1, 2, 5, 5, 2, 3],
        }
    )
    positions = window_positions(seconds, 4)
    assert positions.tolist() == [
        [-1, -1, -1, 0],
        [-1, -1, 0, 1],
        [1, 5, -1, 2],
        [-1, -1, -1, 3],
        [-1, -1, -1, 4],
        [-1, 0, 1, 5],
    ]
    windows = take_windows(pd.Series([1.0, 2.0, 3.0, 4.0, np.inf, 6.0]), positions[[2, 4]])
    np.testing.assert_array_equal(windows, [[2, 6, np.nan, 3], [np.nan] * 4])


def test_rows_keep_their_own_second_and_label(folder: Path) -> None:
    table = built(folder).table
    seconds = pd.read_parquet(folder / source.TABLE)
    row = table.frame.iloc[100]
    origin = seconds.iloc[int(row["source_line"]) - 1]
    column = "degradation" if row["quantity"] == "throughput" else "degradation_p99"
    assert row["share"] == pytest.approx(1 - origin[column])
    assert (row["victim"], row["run"]) == (origin["victim"], f"run {origin['run']}")
    last = to_matrix(table.frame["group.cpu.usage_seconds"])[100, -1]
    assert last == np.float32(origin["group.cpu.usage_seconds"])
    assert str(row["victim"]) in row["tenants"].split("+")


def test_no_report_of_the_victim_is_a_feature(folder: Path) -> None:
    features = set(built(folder).table.select(role="feature"))
    assert not features & {*source.LABELS, "victim", "aggressors", "intensity", "aggressor_intensity", "clock", "phase"}


def test_seconds_alone_train_and_are_excluded_from_metrics(folder: Path) -> None:
    frame = built(folder).table.frame
    alone = frame[frame["is_reference"] == 1]
    assert len(alone) and (alone["aggressors"] == "").all()
    assert alone.loc[alone["quantity"] == "throughput", "share"].between(0.9, 1.1).all()


def test_a_second_without_work_has_the_least_share(folder: Path) -> None:
    result = built(folder)
    assert result.quality["shares_below_least"] >= 1
    assert result.table.frame["share"].min() == 0.01


def test_rejected_labels_are_quarantined_but_stay_in_windows(folder: Path, tmp_path: Path) -> None:
    seconds = pd.read_parquet(folder / source.TABLE)
    line = int(built(folder).table.frame["source_line"].iloc[40]) - 1
    following = seconds[
        (seconds["run"] == seconds["run"][line])
        & (seconds["tenant"] == seconds["tenant"][line])
        & (seconds["second"] == seconds["second"][line] + 1)
    ].index

    def reject(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[line, "rejected"] = "late+steal"
        frame.loc[following, "rejected"] = ""
        return frame

    result = built(changed(folder, tmp_path, reject))
    lost = result.rejected[result.rejected["line"] == line + 1]
    assert set(lost["reason"]) == {"late_sample"}
    assert set(lost["detail"]) == {"late+steal"}
    if len(following):
        after = result.table.frame
        place = after.index[after["source_line"] == following[0] + 1][0]
        window = to_matrix(after["group.cpu.usage_seconds"])[place]
        assert window[-2] == np.float32(seconds["group.cpu.usage_seconds"][line])


def test_unsteady_tails_are_quarantined_by_the_option(folder: Path) -> None:
    strict, loose = built(folder, max_tail_spread=1e-4), built(folder, max_tail_spread=5.0)
    tails = [(result.table.frame["quantity"] == "latency_p99").sum() for result in (strict, loose)]
    assert tails[0] < tails[1]
    assert "unsteady_tail_reference" in set(strict.rejected["reason"])


def test_cores_and_neighbors_follow_the_placement(folder: Path) -> None:
    frame = built(folder).table.frame
    expected = {"same_core": 1.0, "other_core": 1.0, "shared_cores": 2.0, "memory": 2.0}
    for placement, rows in frame.groupby("placement"):
        if placement in expected:
            assert (rows["cores"] == expected[placement]).all()
    assert frame.loc[frame["placement"] == "quota", "cores"].isin([0.7, 1.0, 1.4]).all()
    pinned = frame["placement"] == "other_core"
    assert (frame.loc[pinned, "neighbors"] == 0).all()
    assert frame.loc[pinned, "task_kind"].str.endswith("separate cores").all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="degradation"), "'degradation'"),
        (lambda frame: frame.assign(**{"stat.ctxt": "many"}), "must be numbers"),
        (lambda frame: frame.iloc[:0], "no rows"),
    ],
)
def test_a_broken_table_is_one_line(folder: Path, tmp_path: Path, change, words: str) -> None:
    broken = changed(folder, tmp_path, change)
    with pytest.raises(UserError, match=words) as error:
        built(broken)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=words):
        source.check(broken)


def test_an_option_that_is_no_number_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="max_tail_spread"):
        built(folder, max_tail_spread=-1)
