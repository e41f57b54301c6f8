"""Labeled seconds to rows: windows, labels, quarantine, columns by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.interference.datasets import host_interference
from perfcast.domains.interference.sources import host_interference as source
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.schema.sequences import to_matrix
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interference")
    generated.write(path, rows=600, seed=2)
    return path


def built(folder: Path) -> object:
    return host_interference.build({"host_interference": folder}, {})


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
    positions = host_interference.window_positions(seconds, 4)
    assert positions.tolist() == [
        [-1, -1, -1, 0],
        [-1, -1, 0, 1],
        [1, 5, -1, 2],
        [-1, -1, -1, 3],
        [-1, -1, -1, 4],
        [-1, 0, 1, 5],
    ]
    windows = host_interference.take_windows(pd.Series([1.0, 2.0, 3.0, 4.0, np.inf, 6.0]), positions[[2, 4]])
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


def test_unsteady_tails_are_quarantined(folder: Path, tmp_path: Path) -> None:
    result = built(changed(folder, tmp_path, lambda frame: frame.assign(reference_spread_p99=0.21)))
    assert "unsteady_tail_reference" in set(result.rejected["reason"])
    assert set(result.table.frame["quantity"]) == {"throughput"}


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


def test_a_mean_is_over_earlier_seconds_alone_of_the_same_tenant() -> None:
    seconds = pd.DataFrame(
        [
            (0, 1, 0, 3, "together", 50.0),
            (0, 1, 0, 1, "alone", 10.0),
            (0, 1, 0, 2, "alone", 30.0),
            (0, 1, 0, 5, "alone", 500.0),
            (0, 1, 0, 6, "together", 70.0),
            (0, 1, 1, 1, "alone", 7.0),
            (0, 1, 1, 2, "alone", np.nan),
            (0, 1, 1, 3, "together", 1.0),
            (1, 1, 0, 3, "together", 1.0),
        ],
        columns=["run", "attempt", "tenant", "second", "phase", "metric"],
    )
    means = host_interference.average_alone(seconds, ["metric"])[:, 0]
    np.testing.assert_allclose(means, [20, np.nan, 10, 20, 180, np.nan, 7, 7, np.nan])


def test_rows_and_labels_are_those_of_the_dataset_without_it(folder: Path) -> None:
    known = host_interference.build_known({"host_interference": folder}, {}).table
    plain = built(folder).table
    assert (known.dataset, plain.dataset) == ("host_interference_known", "host_interference")
    pd.testing.assert_frame_equal(known.frame[list(plain.frame)], plain.frame)
    added = known.columns[len(plain.columns) :]
    assert {column.group for column in added} == {"alone"}
    assert all(column.name.startswith(f"{host_interference.ALONE}group.") for column in added)


def test_a_row_has_the_mean_of_its_own_tenant(folder: Path) -> None:
    frame = host_interference.build_known({"host_interference": folder}, {}).table.frame
    seconds = pd.read_parquet(folder / source.TABLE)
    row = frame[frame["is_reference"] == 0].iloc[-1]
    origin = seconds.iloc[int(row["source_line"]) - 1]
    same = (seconds[["run", "attempt", "tenant"]] == origin[["run", "attempt", "tenant"]]).all(axis=1)
    earlier = seconds[same & (seconds["phase"] == "alone") & (seconds["second"] < origin["second"])]
    metric = "group.cpu.usage_seconds"
    assert row[host_interference.ALONE + metric] == pytest.approx(earlier[metric].mean(), rel=1e-6)
