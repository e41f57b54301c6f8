"""The scores by benchmark: quarantine, what the dump of published results adds, and that no result is a feature."""

import csv
import gzip
import io
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail import BENCHMARKS, COLUMNS, TARGETS, build
from perfcast.domains.servers.testing import spec_cpu2017, spec_cpu2017_detail
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError

DETAIL, DUMP = "spec_cpu2017_detail", "spec_cpu2017"
FILE = "input_FP_rate.csv"
SCORE = "503.bwaves_r"
ROWS = 60


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folders = {name: tmp_path_factory.mktemp(name) for name in (DETAIL, DUMP)}
    spec_cpu2017_detail.write(folders[DETAIL], rows=ROWS, seed=3)
    spec_cpu2017.write(folders[DUMP], rows=ROWS, seed=3)
    return folders


@pytest.fixture(scope="module")
def built(raw):
    return build(raw, {})


@pytest.fixture(scope="module")
def alone(raw):
    return build({DETAIL: raw[DETAIL]}, {})


def read(folder, name=FILE):
    return pd.read_csv(folder / name, dtype=str, keep_default_na=False)


def build_edited(raw, target, change, *files, **further):
    """Build from copies of the four files, those named (default: all) changed by a function of their frame."""
    for name in BENCHMARKS:
        frame = read(raw[DETAIL], name)
        frame = change(frame) if not files or name in files else frame
        frame.to_csv(target / name, index=False, lineterminator="\n")
    return build({DETAIL: target, **further}, {})


def read_scores(source):
    """Return the published score of every identifier of the dump."""
    text = gzip.decompress(next(source.glob("*.gz")).read_bytes()).decode(errors="replace")
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    place, published = [" ".join(name.split()) for name in header].index("Base Result"), {}
    for fields in lines:
        match = re.search(r"cpu2017-\d{8}-\d{5}", " ".join(fields))
        if match and re.fullmatch(r"[\d.]+", fields[place]):
            published.setdefault(match[0], float(fields[place]))
    return pd.DataFrame({"published": published})


def edit_dump(source, target, change):
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


def test_build_fills_only_the_targets_of_the_suite(built, raw):
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


def test_build_quarantines_each_defect_with_reason(raw, tmp_path):
    defects = {
        "no_score": [
            (SCORE, "inf"),
            ("554.roms_r", "NaN"),
            (SCORE, "0"),
            (SCORE, ""),
            (SCORE, "-12.5"),
            (SCORE, "fast"),
        ],
        "out_of_bounds": [(SCORE, "0.000001"), ("nominal_mhz", "99000")],
        "no_result_id": [("file", "result.csv"), ("file", "cpu2017-20191345-00001.csv")],
        "no_processor": [("model_name", " ")],
        "impossible_counts": [
            ("sockets", "2.5"),
            ("sockets", "0"),
            ("threads_per_core", "3"),
            ("cores_per_socket", "5000"),
        ],
    }
    cells = [(*cell, reason) for reason, group in defects.items() for cell in group]

    def spoil(frame):
        for row, (column, text, _) in enumerate(cells):
            frame.loc[row, column] = text
        return frame

    result = build_edited(raw, tmp_path, spoil, FILE)
    rejected = result.rejected[["file", "line", "reason"]].to_numpy().tolist()
    assert rejected == [[FILE, row + 2, reason] for row, (_, _, reason) in enumerate(cells)]
    assert result.rows_in == 4 * ROWS
    assert len(result.table.frame) == 4 * ROWS - len(cells)


def test_build_quarantines_malformed_lines(raw, tmp_path):
    shutil.copytree(raw[DETAIL], tmp_path, dirs_exist_ok=True)
    header, first, _, third, *others = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    broken = [header, first[:50] + b"\n", header, third.replace(b"Linux", b"Lin\xffux", 1), *others]
    (tmp_path / FILE).write_bytes(b"".join(broken))
    rejected = build({DETAIL: tmp_path}, {}).rejected[["line", "reason"]].to_numpy().tolist()
    assert rejected == [[2, "wrong_field_count"], [3, "repeated_header"], [4, "not_utf8"]]
    (tmp_path / FILE).unlink()
    with pytest.raises(UserError, match=FILE):
        build({DETAIL: tmp_path}, {})
    with pytest.raises(UserError, match="must hold a usable result"):
        build_edited(raw, tmp_path, lambda frame: frame.assign(model_name=""))


def test_build_merges_equal_rows_and_rejects_repeated_identifiers(raw, tmp_path):
    repeated_file = read(raw[DETAIL], "input_Int_rate.csv")["file"][0]

    def repeat(frame):
        twin = frame.iloc[[0]].assign(file="cpu2017-20200101-99999.csv")
        again = frame.iloc[[1]].assign(**{SCORE: "77"})
        other = frame.iloc[[2]].assign(file=repeated_file, **{SCORE: "78"})
        return pd.concat([frame, twin, again, other])

    result = build_edited(raw, tmp_path, repeat, FILE)
    assert result.merged == {"identical_but_for_result_id": 1}
    assert result.rejected["reason"].tolist() == ["duplicate_result_id"] * 2
    assert result.rows_in == 4 * ROWS + 3 == len(result.table.frame) + 1 + 2


RESULTS = re.compile(r"(?i)^t_|^\d{3}\.|score|result|mean|peak|energy|watt|second|runtime|specrate|specspeed")
"""Names of columns that are computed from the scores or measured with them."""


def test_no_feature_is_named_like_a_result():
    features = {column.name for column in COLUMNS if column.role is Role.FEATURE}
    assert not set(filter(RESULTS.search, features)) and not set(TARGETS) & features
    assert all(map(RESULTS.search, ("t_503.bwaves_r", "503.bwaves_r_peak", "SPECrate2017_fp_base", "geomean")))


def test_build_ignores_unknown_columns(raw, alone, tmp_path):
    def plant(frame):
        copied = frame.assign(**{"SPECrate2017_fp_base": frame[SCORE], "t_999.new_r": frame[SCORE], "mean": "1"})
        return copied.assign(**{f"t_{SCORE}": "1.0"})

    result = build_edited(raw, tmp_path, plant, FILE)
    pd.testing.assert_frame_equal(result.table.frame, alone.table.frame)
    assert result.table.columns == alone.table.columns


def test_build_uses_dump_scores_only_for_q_withdrawn_and_matches_no_result_of_another_suite(raw, built, tmp_path):
    def withdraw(row):
        row |= {"Base Result": "0", "Peak Result": "9.99", "Energy Base Result": "700", "Updated": "Aug-2024"}

    def swap(row):
        row["Benchmark"] = {"CINT2017": "CFP2017", "CFP2017": "CINT2017"}.get(row["Benchmark"], row["Benchmark"])

    result = build({**raw, DUMP: edit_dump(raw[DUMP], tmp_path, withdraw)}, {})
    matched = result.quality["joined"]["matched"]
    frame, before = (each.table.frame.drop(columns="q_withdrawn") for each in (result, built))
    pd.testing.assert_frame_equal(frame, before)
    assert result.table.frame["q_withdrawn"].sum() == matched > 0
    joined = build({**raw, DUMP: edit_dump(raw[DUMP], tmp_path, swap)}, {}).quality["joined"]
    assert joined["found_in_another_suite"] > 0
    assert joined["matched"] + joined["found_in_another_suite"] == built.quality["joined"]["matched"]


def test_build_joins_dates_texts_and_missing_counts_of_dump(raw, built, alone, tmp_path):
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

    def forget(frame):
        frame.loc[frame["file"] == f"{first}.csv", ["sockets", "cores_per_socket", "threads_per_core"]] = ""
        return frame

    rebuilt = build_edited(raw, tmp_path, forget, **{DUMP: raw[DUMP]})
    names = ["chips", "cores_enabled_total", "threads_per_core"]
    before, after = (result.table.frame.set_index("result_id").loc[first, names] for result in (built, rebuilt))
    assert before.notna().all() and before.tolist() == after.tolist()


def test_build_without_dump_dates_results_by_arrival_and_keeps_rows_with_missing_topology(alone):
    frame = alone.table.frame
    assert (frame["published_month"] == frame["arrival_day"].dt.to_period("M").dt.to_timestamp()).all()
    assert (frame["published_month"].dt.strftime("%Y%m") == frame["result_id"].str.slice(8, 14)).all()
    unknown = frame[frame["chips"].isna()]
    assert len(unknown) > 0 and not unknown["q_cores_mismatch"].any()
    assert unknown["submission_id"].str.contains("| ? |", regex=False).all()


def test_build_converts_detail_columns_to_standard_units(raw, alone, tmp_path):
    changed = {"mem_data_rate": "2666", "l2_cache_kb": "1024.0"}
    frame = build_edited(raw, tmp_path, lambda frame: frame.assign(**changed), FILE).table.frame.set_index("result_id")
    text = read(raw[DETAIL])
    row = text[text["sockets"] != ""].iloc[0]
    got = frame.loc[row["file"].removesuffix(".csv")]
    assert got["cpu_model"] == row["model_name"].casefold()
    assert got["cores_enabled_total"] == int(row["sockets"]) * int(row["cores_per_socket"])
    assert (got["dimm_count"], got["copies_or_threads"]) == (int(row["mem_channels"]), int(row["threads_or_copies"]))
    assert got["dimm_count"] * got["dimm_gb"] == got["mem_total_gb"]
    assert got[["mem_rated_mts", "l2_kb_per_core"]].tolist() == [2667, 1024]
    assert got["l3_mb_per_chip"] == float(row["l3_cache_kb"]) / 1024
    assert got["mem_os_gb"] == pytest.approx(int(row["mem_kb"]) / 2**20)
    stated = alone.table.frame.dropna(subset="max_mhz")
    pd.testing.assert_series_equal(stated["max_turbo_mhz"], stated["max_mhz"], check_names=False)
