"""Measured kernels: quarantine, repetitions, units, and the working set beside the caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perfcast.config.conf_files import read_yaml
from perfcast.data.datasets.host import host_suite
from perfcast.data.sources.ingestion import check_structure
from perfcast.data.sources.source_spec import parse_source
from perfcast.features import working_set
from perfcast.schema.table import Role, Tag
from perfcast.splits import make
from perfcast.testing import host_suite as fake
from perfcast.utils.errors import UserError
from perfcast.utils.io import sha256, write_json

SPEC = parse_source("host_suite", read_yaml(Path(__file__).parents[4] / "conf/source/host_suite.yaml"))
GOOD = {
    "kernel": "triad",
    "variant": "float64",
    "bytes": "65536",
    "threads": "2",
    "pinned": "1",
    "warmups": "8",
    "repeats": "5",
    "calls": "20",
    "work": "0.01",
    "combined": "sum",
    "seconds_median": "0.0002",
    "seconds_min": "0.00019",
    "seconds_spread": "0.02",
    "rate": "100",
    "unit": "GB/s",
    "waited_share": "0.001",
    "stolen_share": "0",
    "other_load": "0.2",
    "interrupted": "0",
    "order": "0",
    "pass": "0",
}
# two cores of two hardware threads each
MACHINE = {"cores": 4, "threads_per_core": 2, "l1d_kib": 64.0, "l2_kib": 1024.0, "l3_kib": 32768.0, "cpu_model": "Any"}


def write(folder: Path, rows: list[dict[str, str]], machine: Any = MACHINE) -> dict[str, Path]:
    pd.DataFrame(rows, columns=list(GOOD)).to_csv(folder / "host_suite.csv.gz", index=False)
    write_json(folder / "host_suite.json", machine)
    return {"host_suite": folder}


def reasons(folder: Path, *changed: dict[str, str], **options: Any) -> list[tuple[int, str, str]]:
    built = host_suite.build(write(folder, [GOOD, *({**GOOD, **row} for row in changed)]), options)
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return list(built.rejected[["line", "reason", "detail"]].itertuples(index=False, name=None))


def test_build_makes_configuration_of_valid_row(tmp_path: Path) -> None:
    built = host_suite.build(write(tmp_path, [GOOD]), {})
    table, row = built.table, built.table.frame.iloc[0]
    assert (row["result_id"], row["problem"]) == ("triad-float64-65536-t2", "triad-65536")
    assert (row["rate"], row["unit"], row["source_line"]) == (100, "GB/s", 2)
    assert table.select(role=Role.TARGET) == ["rate"]
    assert table.column_of(Tag.TASK) == "kernel"
    assert table.select(tag=Tag.ENTITY) == ["problem"]
    assert table.select(tag=Tag.SCALING) == ["bytes", "threads"]
    assert built.quality["units"] == {"triad": "GB/s"}
    how = {"seconds_median", "waited_share", "interrupted", "unit", "work", "calls"}
    assert how <= set(table.select(role=Role.PROVENANCE)), "measurement conditions are no features"


@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        ({"kernel": ""}, "not_a_name", "kernel: "),
        ({"variant": "two words"}, "not_a_name", "variant: two words"),
        ({"rate": "fast"}, "not_a_number", "rate: fast"),
        ({"work": "inf"}, "not_a_number", "work: inf"),
        ({"waited_share": "much"}, "not_a_number", "waited_share: much"),
        ({"combined": "most"}, "unknown_combination", "most"),
        ({"threads": "1.5"}, "not_a_whole_number", "threads: 1.5"),
        ({"seconds_min": "0"}, "not_positive", "seconds_min: 0"),
        ({"threads": "0"}, "out_of_bounds", "threads: 0"),
        ({"interrupted": "2"}, "out_of_bounds", "interrupted: 2"),
        ({"unit": "MB/s"}, "another_unit", "MB/s"),
        ({"rate": "50"}, "inconsistent_rate", "rate: 50"),
        ({"interrupted": "1", "waited_share": "0.3"}, "interrupted", "waited_share: 0.3, stolen_share: 0"),
        ({"seconds_spread": "0.51"}, "unstable", "seconds_spread: 0.51"),
    ],
)
def test_build_quarantines_bad_row_with_reason(
    tmp_path: Path, change: dict[str, str], reason: str, detail: str
) -> None:
    assert reasons(tmp_path, change) == [(3, reason, detail)]


def test_build_accepts_empty_disturbances(tmp_path: Path) -> None:
    undisturbed = {"waited_share": "", "stolen_share": "", "other_load": "", "threads": "1", "rate": "50"}
    assert reasons(tmp_path, undisturbed) == []


def test_build_multiplies_only_summed_rates_by_threads(tmp_path: Path) -> None:
    chase = {"kernel": "chase", "combined": "mean", "unit": "Maccesses/s"}
    assert reasons(tmp_path, {**chase, "rate": "50"}) == []
    assert reasons(tmp_path, {**chase, "rate": "100"})[0][1] == "inconsistent_rate"


def test_build_accepts_new_kernel_as_task(tmp_path: Path) -> None:
    built = host_suite.build(write(tmp_path, [GOOD, {**GOOD, "kernel": "quad", "unit": "things/s"}]), {})
    assert set(built.table.frame["kernel"]) == {"triad", "quad"}
    assert len(built.rejected) == 0


def test_build_keeps_steadiest_repetition(tmp_path: Path) -> None:
    steadier = {**GOOD, "seconds_spread": "0.01", "calls": "7"}
    built = host_suite.build(write(tmp_path, [GOOD, steadier, GOOD]), {})
    assert built.table.frame["calls"].tolist() == [7]
    assert built.merged == {"duplicate_configuration": 2}


@pytest.mark.parametrize("value", [0, "0.5", True, float("nan")])
def test_build_refuses_invalid_max_spread(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UserError, match="max_spread' of host_suite"):
        host_suite.build(write(tmp_path, [GOOD]), {"max_spread": value})


@pytest.mark.parametrize("name", ["host_suite.json", "host_suite.csv.gz"])
def test_source_and_build_name_absent_file(tmp_path: Path, name: str) -> None:
    raw = write(tmp_path, [GOOD])
    check_structure(SPEC, tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match=name):
        host_suite.build(raw, {})
    with pytest.raises(UserError, match=name):
        check_structure(SPEC, tmp_path)


def test_working_set_compares_bytes_with_caches(tmp_path: Path) -> None:
    sizes = {16: "l1d", 64: "l2", 1024: "l3", 16384: "l3", 32768: "memory"}
    rows = [{**GOOD, "bytes": str(kib * 1024)} for kib in sizes]
    table = working_set.derive(host_suite.build(write(tmp_path, rows), {}).table)
    frame = table.frame.set_index(table.frame["bytes"] / 1024).loc[list(sizes)]
    assert frame["fits_in"].tolist() == list(sizes.values()), "the last level is shared by both threads"
    assert frame["bytes_over_l1d"].tolist() == [kib / 32 for kib in sizes]
    assert frame["bytes_over_l2"].tolist() == [kib / 512 for kib in sizes]
    assert frame["bytes_over_l3"].tolist() == [2 * kib / 32768 for kib in sizes]
    assert (frame["thread_share"] == 0.5).all()
    np.testing.assert_allclose(frame["log_bytes_together"], np.log(2 * 1024 * np.array(list(sizes))))


def test_working_set_leaves_level_missing_for_unknown_cache(tmp_path: Path) -> None:
    raw = write(tmp_path, [GOOD], {**MACHINE, "l3_kib": None})
    frame = working_set.derive(host_suite.build(raw, {}).table).frame
    assert frame["fits_in"].isna().all()
    assert frame["bytes_over_l2"].notna().all()


def test_unseen_shape_split_keeps_each_problem_on_one_side(tmp_path: Path) -> None:
    fake.write(tmp_path, rows=200, seed=0)
    table = host_suite.build({"host_suite": tmp_path}, {}).table
    folds = make("unseen_shape", table, 0)
    for fold in folds:
        parts = table.frame.groupby("problem")["kernel"].count().index
        side = folds[fold].eq("test").groupby(table.frame["problem"]).nunique()
        assert (side.loc[parts] == 1).all()


def test_generated_files_are_seeded_and_have_defects(tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        fake.write(tmp_path / folder, rows=60, seed=seed)
    digests = [sha256(tmp_path / folder / "host_suite.csv.gz") for folder in ("one", "same", "other")]
    assert digests[0] == digests[1] != digests[2]
    built = host_suite.build({"host_suite": tmp_path / "one"}, {})
    assert set(built.rejected["reason"]) == {"unstable", "not_positive", "interrupted"}
    assert built.rows_merged > 0
