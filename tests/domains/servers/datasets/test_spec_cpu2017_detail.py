"""The scores by benchmark: quarantine, what the dump of published results adds, and that no result is a feature."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail import BENCHMARKS, COLUMNS, TARGETS, build
from perfcast.domains.servers.testing import cpu_catalog, spec_cpu2017, spec_cpu2017_detail
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError

DETAIL, DUMP = "spec_cpu2017_detail", "spec_cpu2017"
FILE = "input_FP_rate.csv"
SCORE = "503.bwaves_r"
ROWS = 120


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in (DETAIL, DUMP, "cpu_catalog")}
    spec_cpu2017_detail.write(folders[DETAIL], rows=ROWS, seed=3)
    spec_cpu2017.write(folders[DUMP], rows=ROWS, seed=3)
    cpu_catalog.write(folders["cpu_catalog"], rows=10, seed=3)
    return folders


@pytest.fixture(scope="module")
def built(raw: dict[str, Path]) -> Standardized:
    return build(raw, {})


@pytest.fixture(scope="module")
def alone(raw: dict[str, Path]) -> Standardized:
    return build({DETAIL: raw[DETAIL]}, {})


def read(folder: Path, name: str = FILE) -> pd.DataFrame:
    return pd.read_csv(folder / name, dtype=str, keep_default_na=False)


def edit_files(source: Path, target: Path, **changes: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[str, Path]:
    """Copy the four files, each changed by the function of its suite, such as FP_rate."""
    for name in BENCHMARKS:
        frame = changes.get(name[6:-4], lambda same: same)(read(source, name))
        frame.to_csv(target / name, index=False, lineterminator="\n")
    return {DETAIL: target}


def read_scores(source: Path) -> pd.DataFrame:
    """Return the published score of every identifier of the dump."""
    text = gzip.decompress(next(source.glob("*.gz")).read_bytes()).decode(errors="replace")
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    place = [" ".join(name.split()) for name in header].index("Base Result")
    found = {}
    for fields in lines:
        match = re.search(r"cpu2017-\d{8}-\d{5}", " ".join(fields))
        if match and re.fullmatch(r"[\d.]+", fields[place]):
            found.setdefault(match[0], float(fields[place]))
    return pd.DataFrame({"published": found})


def edit_dump(source: Path, target: Path, change: Callable[[dict[str, str]], None]) -> Path:
    """Copy the dump with every row changed."""
    data = gzip.decompress(next(source.glob("*.gz")).read_bytes())
    lines = [line for line in data.splitlines(keepends=True) if b"\xff" not in line]
    header = next(csv.reader([lines[0].decode()]))
    names = [" ".join(name.split()) for name in header]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(header)
    for fields in csv.reader(line.decode() for line in lines[1:]):
        row = dict(zip(names, fields, strict=False))
        if len(fields) == len(names) - 1 and row["Benchmark"].startswith("C"):
            change(row)
            writer.writerow(row.values())
    (target / "dump.csv").write_text(buffer.getvalue(), encoding="utf-8", newline="")
    return target


def test_build_fills_only_the_targets_of_the_suite(built: Standardized, raw: dict[str, Path]) -> None:
    frame = built.table.frame.set_index("result_id")
    assert len(TARGETS) == len(set(TARGETS)) == 43
    suites = {"Int_rate": "CINT2017rate", "FP_rate": "CFP2017rate", "Int_speed": "CINT2017speed"}
    for name, suite in {**suites, "FP_speed": "CFP2017speed"}.items():
        file = f"input_{name}.csv"
        part, text = frame[frame["suite"] == suite], read(raw[DETAIL], file)
        text = text.set_index(text["file"].str.removesuffix(".csv"))
        scores = list(BENCHMARKS[file])
        assert len(part) == ROWS
        assert (part[scores].to_numpy() == text.loc[part.index, scores].astype(float).to_numpy()).all()
        assert part[[target for target in TARGETS if target not in scores]].isna().all(axis=None)


def test_build_quarantines_each_defect_with_reason(raw: dict[str, Path], tmp_path: Path) -> None:
    cells = [
        (SCORE, "inf", "no_score"),
        ("554.roms_r", "NaN", "no_score"),
        (SCORE, "0", "no_score"),
        (SCORE, "", "no_score"),
        (SCORE, "-12.5", "no_score"),
        (SCORE, "fast", "no_score"),
        (SCORE, "0.000001", "out_of_bounds"),
        ("file", "result.csv", "no_result_id"),
        ("file", "cpu2017-20191345-00001.csv", "no_result_id"),
        ("model_name", " ", "no_processor"),
        ("sockets", "2.5", "impossible_counts"),
        ("sockets", "0", "impossible_counts"),
        ("threads_per_core", "3", "impossible_counts"),
        ("cores_per_socket", "5000", "impossible_counts"),
        ("nominal_mhz", "99000", "out_of_bounds"),
    ]

    def spoil(frame: pd.DataFrame) -> pd.DataFrame:
        for row, (column, text, _) in enumerate(cells):
            frame.loc[row, column] = text
        return frame

    result = build(edit_files(raw[DETAIL], tmp_path, FP_rate=spoil), {})
    rejected = result.rejected[["file", "line", "reason"]].to_numpy().tolist()
    assert rejected == [[FILE, row + 2, reason] for row, (_, _, reason) in enumerate(cells)]
    assert result.rows_in == 4 * ROWS
    assert len(result.table.frame) == 4 * ROWS - len(cells)


def test_build_quarantines_malformed_lines(raw: dict[str, Path], tmp_path: Path) -> None:
    for name in BENCHMARKS:
        (tmp_path / name).write_bytes((raw[DETAIL] / name).read_bytes())
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    broken = [lines[0], lines[1][:50] + b"\n", lines[0], lines[3].replace(b"x86_64", b"x86\xff64"), *lines[4:]]
    broken[3] = broken[3].replace(b"Linux", b"Lin\xffux", 1)
    (tmp_path / FILE).write_bytes(b"".join(broken))
    result = build({DETAIL: tmp_path}, {})
    assert result.rejected[["line", "reason"]].to_numpy().tolist() == [
        [2, "wrong_field_count"],
        [3, "repeated_header"],
        [4, "not_utf8"],
    ]


def test_build_merges_equal_rows_and_rejects_repeated_identifiers(raw: dict[str, Path], tmp_path: Path) -> None:
    repeated_file = read(raw[DETAIL], "input_Int_rate.csv")["file"][0]

    def repeat(frame: pd.DataFrame) -> pd.DataFrame:
        twin = frame.iloc[[0]].assign(file="cpu2017-20200101-99999.csv")
        again = frame.iloc[[1]].assign(**{SCORE: "77"})
        other = frame.iloc[[2]].assign(file=repeated_file, **{SCORE: "78"})
        return pd.concat([frame, twin, again, other])

    result = build(edit_files(raw[DETAIL], tmp_path, FP_rate=repeat), {})
    assert result.merged == {"identical_but_for_result_id": 1}
    assert result.rejected["reason"].tolist() == ["duplicate_result_id"] * 2
    assert result.rows_in == 4 * ROWS + 3 == len(result.table.frame) + 1 + 2


RESULTS = re.compile(r"(?i)^t_|^\d{3}\.|score|result|mean|peak|energy|watt|second|runtime|specrate|specspeed")
"""Names of columns that are computed from the scores or measured with them."""


def test_no_feature_is_named_like_a_result() -> None:
    features = [column.name for column in COLUMNS if column.role is Role.FEATURE]
    assert [name for name in features if RESULTS.search(name)] == []
    assert not set(TARGETS) & set(features)
    assert all(map(RESULTS.search, ("t_503.bwaves_r", "503.bwaves_r_peak", "SPECrate2017_fp_base", "geomean")))


def test_build_ignores_unknown_columns(raw: dict[str, Path], alone: Standardized, tmp_path: Path) -> None:
    def plant(frame: pd.DataFrame) -> pd.DataFrame:
        copied = frame.assign(**{"SPECrate2017_fp_base": frame[SCORE], "t_999.new_r": frame[SCORE], "mean": "1"})
        return copied.assign(**{f"t_{SCORE}": "1.0"})

    result = build(edit_files(raw[DETAIL], tmp_path, FP_rate=plant), {})
    pd.testing.assert_frame_equal(result.table.frame, alone.table.frame)
    assert result.table.columns == alone.table.columns


def test_build_uses_dump_scores_only_for_q_withdrawn(raw: dict[str, Path], built: Standardized, tmp_path: Path) -> None:
    def withdraw(row: dict[str, str]) -> None:
        row |= {"Base Result": "0", "Peak Result": "9.99", "Energy Base Result": "700", "Updated": "Aug-2024"}

    result = build({**raw, DUMP: edit_dump(raw[DUMP], tmp_path, withdraw)}, {})
    matched = result.quality["joined"]["matched"]
    pd.testing.assert_frame_equal(
        result.table.frame.drop(columns="q_withdrawn"), built.table.frame.drop(columns="q_withdrawn")
    )
    assert matched > 0
    assert result.table.frame["q_withdrawn"].sum() == matched


def test_build_joins_dates_texts_and_missing_counts_of_dump(
    raw: dict[str, Path], built: Standardized, alone: Standardized, tmp_path: Path
) -> None:
    joined = built.quality["joined"]
    linked = built.table.frame["test_month"].notna()
    assert 0 < joined["matched"] == linked.sum() < 4 * ROWS == joined["rows"]
    frame = built.table.frame[linked].merge(read_scores(raw[DUMP]), left_on="result_id", right_index=True)
    mean = np.exp(np.log(frame[list(TARGETS)]).mean(axis=1))
    assert ((mean / frame["published"] - 1).abs() < 0.005).all(), "published scores are geometric means of benchmarks"
    assert built.table.frame.loc[linked, ["kernel_series", "dimm_ranks", "hw_avail"]].notna().all(axis=None)
    assert alone.table.frame[["kernel_series", "dimm_ranks", "hw_avail", "test_month"]].isna().all(axis=None)
    assert alone.quality["joined"]["matched"] == 0

    first = built.table.frame.loc[linked, "result_id"].iloc[0]

    def forget(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[frame["file"] == f"{first}.csv", ["sockets", "cores_per_socket", "threads_per_core"]] = ""
        return frame

    changes = dict.fromkeys(("FP_rate", "FP_speed", "Int_rate", "Int_speed"), forget)
    rebuilt = build({**raw, **edit_files(raw[DETAIL], tmp_path, **changes)}, {})
    names = ["result_id", "chips", "cores_enabled_total", "threads_per_core"]
    for result in (built, rebuilt):
        assert result.table.frame.loc[result.table.frame["result_id"] == first, names].notna().all(axis=None)
    pd.testing.assert_series_equal(
        rebuilt.table.frame.set_index("result_id").loc[first, names[1:]],
        built.table.frame.set_index("result_id").loc[first, names[1:]],
    )


def test_build_does_not_match_results_of_another_suite(
    raw: dict[str, Path], built: Standardized, tmp_path: Path
) -> None:
    swapped = {"CINT2017": "CFP2017", "CFP2017": "CINT2017"}

    def swap(row: dict[str, str]) -> None:
        row["Benchmark"] = swapped.get(row["Benchmark"], row["Benchmark"])

    joined = build({**raw, DUMP: edit_dump(raw[DUMP], tmp_path, swap)}, {}).quality["joined"]
    assert joined["found_in_another_suite"] > 0
    assert joined["matched"] + joined["found_in_another_suite"] == built.quality["joined"]["matched"]


def test_build_without_dump_dates_results_by_arrival(alone: Standardized) -> None:
    frame = alone.table.frame
    assert (frame["published_month"] == frame["arrival_day"].dt.to_period("M").dt.to_timestamp()).all()
    assert (frame["published_month"].dt.strftime("%Y%m") == frame["result_id"].str.slice(8, 14)).all()


def test_build_converts_detail_columns_to_standard_units(
    raw: dict[str, Path], alone: Standardized, tmp_path: Path
) -> None:
    def round_down(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(mem_data_rate="2666", l2_cache_kb="1024.0")

    frame = build(edit_files(raw[DETAIL], tmp_path, FP_rate=round_down), {}).table.frame.set_index("result_id")
    text = read(raw[DETAIL])
    row = text[text["sockets"] != ""].iloc[0]
    built_row = frame.loc[row["file"].removesuffix(".csv")]
    assert built_row["cpu_model"] == row["model_name"].casefold()
    assert built_row["cores_enabled_total"] == int(row["sockets"]) * int(row["cores_per_socket"])
    assert built_row["dimm_count"] == int(row["mem_channels"])
    assert built_row["dimm_count"] * built_row["dimm_gb"] == built_row["mem_total_gb"]
    assert built_row["mem_rated_mts"] == 2667
    assert built_row["l2_kb_per_core"] == 1024
    assert built_row["l3_mb_per_chip"] == float(row["l3_cache_kb"]) / 1024
    assert built_row["mem_os_gb"] == pytest.approx(int(row["mem_kb"]) / 2**20)
    assert built_row["copies_or_threads"] == int(row["threads_or_copies"])
    stated = alone.table.frame["max_mhz"].notna()
    assert (alone.table.frame["max_turbo_mhz"] == alone.table.frame["max_mhz"])[stated].all()
    assert np.isnan(alone.table.frame["max_turbo_mhz"][~stated]).all()


def test_build_keeps_rows_with_missing_topology(alone: Standardized) -> None:
    unknown = alone.table.frame[alone.table.frame["chips"].isna()]
    assert len(unknown) > 0
    assert unknown["submission_id"].str.contains("| ? |", regex=False).all()
    assert not unknown["q_cores_mismatch"].any()


def test_build_refuses_files_without_usable_result(raw: dict[str, Path], tmp_path: Path) -> None:
    def nothing(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(model_name="")

    changes = dict.fromkeys(("FP_rate", "FP_speed", "Int_rate", "Int_speed"), nothing)
    with pytest.raises(UserError, match="must hold a usable result"):
        build(edit_files(raw[DETAIL], tmp_path, **changes), {})


def test_build_refuses_absent_file(raw: dict[str, Path], tmp_path: Path) -> None:
    edit_files(raw[DETAIL], tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(UserError, match=FILE):
        build({DETAIL: tmp_path}, {})
