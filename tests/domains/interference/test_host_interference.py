"""Labeled seconds to rows: windows, labels, quarantine, columns by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.interference.datasets import host_interference
from perfcast.domains.interference.sources import host_interference as source
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.schema.sequences import to_matrix
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("interference")
    generated.write(path, rows=600, seed=2)
    return path


TENANT = ["run", "attempt", "tenant"]
USAGE = "group.cpu.usage_seconds"


def build(folder):
    return host_interference.build({"host_interference": folder}, {})


@pytest.fixture(scope="module")
def built(folder):
    return build(folder)


@pytest.fixture(scope="module")
def seconds(folder):
    return pd.read_parquet(folder / source.TABLE)


def changed(folder, tmp_path, change):
    frame = change(pd.read_parquet(folder / source.TABLE))
    frame.to_parquet(tmp_path / source.TABLE, index=False)
    (tmp_path / source.MACHINE).write_bytes((folder / source.MACHINE).read_bytes())
    return tmp_path


def test_windows_and_means_are_of_earlier_seconds_of_the_same_tenant():
    rows = [
        (0, 1, 0, 1),
        (0, 1, 0, 2),
        (0, 1, 0, 5),
        (0, 1, 1, 5),
        (1, 1, 0, 2),
        (0, 1, 0, 3),
    ]
    seconds = pd.DataFrame(rows, columns=[*TENANT, "second"])
    positions = host_interference.window_positions(seconds, 3)
    first = [[-1, -1, 0], [-1, 0, 1], [5, -1, 2]]
    assert positions.tolist() == [*first, [-1, -1, 3], [-1, -1, 4], [0, 1, 5]]
    windows = host_interference.take_windows(pd.Series([1.0, 2.0, 3.0, 4.0, np.inf, 6.0]), positions[[2, 4]])
    np.testing.assert_array_equal(windows, [[6, np.nan, 3], [np.nan] * 3])
    # the third second of the first tenant is not alone, and its fourth is not known yet
    seconds["phase"] = ["alone", "alone", "together", "together", "alone", "together"]
    seconds["metric"] = [10.0, 30.0, 500.0, 7.0, 1.0, 70.0]
    means = host_interference.average_alone(seconds, ["metric"])[:, 0]
    np.testing.assert_allclose(means, [np.nan, 10, 20, np.nan, np.nan, 20])


def test_rows_keep_their_own_second_and_label_and_the_cores_of_the_placement(built, seconds):
    table = built.table
    row = table.frame.iloc[100]
    origin = seconds.iloc[int(row["source_line"]) - 1]
    column = "degradation" if row["quantity"] == "throughput" else "degradation_p99"
    assert row["share"] == pytest.approx(1 - origin[column])
    assert (row["victim"], row["run"]) == (origin["victim"], f"run {origin['run']}")
    assert to_matrix(table.frame[USAGE])[100, -1] == np.float32(origin[USAGE])
    assert str(row["victim"]) in row["tenants"].split("+")
    assert built.quality["shares_below_least"] >= 1 and table.frame["share"].min() == 0.01, "without work"
    features = set(table.select(role="feature"))
    assert not features & {
        *source.LABELS,
        "victim",
        "aggressors",
        "intensity",
        "aggressor_intensity",
        "clock",
        "phase",
    }
    alone = table.frame[table.frame["is_reference"] == 1]
    assert len(alone) and (alone["aggressors"] == "").all()
    assert alone.loc[alone["quantity"] == "throughput", "share"].between(0.9, 1.1).all()
    frame = built.table.frame
    for placement, cores in {
        "same_core": 1.0,
        "other_core": 1.0,
        "shared_cores": 2.0,
        "memory": 2.0,
    }.items():
        assert (frame.loc[frame["placement"] == placement, "cores"] == cores).all()
    assert (frame.loc[frame["placement"] == "quota", "cores"] == 1.4).all()
    pinned = frame[frame["placement"] == "other_core"]
    assert (pinned["neighbors"] == 0).all() and pinned["task_kind"].str.endswith("separate cores").all()


def test_rejected_labels_are_quarantined_but_stay_in_windows(folder, built, seconds, tmp_path):
    first = built.table.frame["source_line"].iloc[40:]
    following = {tuple(row): line for line, row in enumerate(seconds[[*TENANT, "second"]].to_numpy().tolist())}
    for line in map(int, first - 1):
        *tenant, second = seconds.loc[line, [*TENANT, "second"]]
        after = following.get((*tenant, second + 1))
        if after is not None:
            break

    def reject(frame):
        frame.loc[line, "rejected"] = "late+steal"
        frame.loc[after, "rejected"] = ""
        return frame

    result = build(changed(folder, tmp_path, reject))
    lost = result.rejected[result.rejected["line"] == line + 1]
    assert (set(lost["reason"]), set(lost["detail"])) == (
        {"late_sample"},
        {"late+steal"},
    )
    place = result.table.frame.index[result.table.frame["source_line"] == after + 1][0]
    assert to_matrix(result.table.frame[USAGE])[place, -2] == np.float32(seconds[USAGE][line])
    result = build(changed(folder, tmp_path, lambda frame: frame.assign(reference_spread_p99=0.21)))
    assert "unsteady_tail_reference" in set(result.rejected["reason"])
    assert set(result.table.frame["quantity"]) == {"throughput"}


def test_a_metric_of_texts_is_refused(folder, tmp_path):
    broken = changed(folder, tmp_path, lambda frame: frame.assign(**{"stat.ctxt": "many"}))
    with pytest.raises(UserError, match="must be numbers"):
        build(broken)


def test_a_known_tenant_adds_its_means_alone_and_nothing_else(folder, built, seconds):
    known = host_interference.build_known({"host_interference": folder}, {}).table
    plain = built.table
    assert (known.dataset, plain.dataset) == (
        "host_interference_known",
        "host_interference",
    )
    pd.testing.assert_frame_equal(known.frame[list(plain.frame)], plain.frame)
    added = known.columns[len(plain.columns) :]
    assert {column.group for column in added} == {"alone"}
    assert all(column.name.startswith(f"{host_interference.ALONE}group.") for column in added)
    row = known.frame[known.frame["is_reference"] == 0].iloc[-1]
    origin = seconds.iloc[int(row["source_line"]) - 1]
    same = (seconds[TENANT] == origin[TENANT]).all(axis=1)
    earlier = seconds[same & (seconds["phase"] == "alone") & (seconds["second"] < origin["second"])]
    assert row[host_interference.ALONE + USAGE] == pytest.approx(earlier[USAGE].mean(), rel=1e-6)
