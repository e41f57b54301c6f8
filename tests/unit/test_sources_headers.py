import gzip
import importlib
import io
import json
import lzma
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.errors import UserError
from perfcast.sources import cpu_catalog, host_gemm, perfcastdb, spec_cpu2006, spec_cpu2017, spec_cpu2017_detail
from perfcast.sources._headers import LONGEST_HEADER, check_csv, check_text, read_header

LIMITED = settings(max_examples=100, deadline=None)


def written(folder: Path, body: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    packed = {".gz": lambda: gzip.compress(body, mtime=0), ".xz": lambda: lzma.compress(body)}
    path.write_bytes(packed.get(path.suffix, lambda: body)())
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz"])
def test_a_header_is_stripped_of_blanks_mark_and_line_ending(tmp_path, name):
    path = written(tmp_path, b'\xef\xbb\xbf"Hardware Vendor\t",Processor ,"a, b"\r\n1,2,3\r\n', name)
    assert read_header(path) == ["Hardware Vendor", "Processor", "a, b"]
    assert check_csv(path, ["Processor"]) == ["Hardware Vendor", "Processor", "a, b"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "empty"),
        (b"\n\n1,2\n", "begins with an empty line"),
        (b"a,b\n", "a header only"),
        (b"a,b\n\n", "a header only"),
        (b"a,b\na,b\n1,2\n", "its second line is the header again"),
        (b"a,b,a\n1,2,3\n", "'a' is there twice"),
        (b"a,beta\n1,2\n", r"must have a column 'b'"),
        (b"a,\xff\n1,2\n", "byte 2 of its header is not"),
        (b"a,b\n1,2\n1,\xe9\n", "line 3 is not"),
        (b"a,b\n1,\xc3", "ends within a character"),
        (b",".join(b"c%d" % i for i in range(1_000_000)) + b"\n", "at most 65536 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz"])
def test_what_is_wrong_is_one_clear_line(tmp_path, name, body, told):
    with pytest.raises(UserError, match=told) as caught:
        check_csv(written(tmp_path, body, name), ["a", "b"])
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_renamed_column_is_guessed(tmp_path):
    with pytest.raises(UserError, match=r"'Base Result', however: it has none of that name \(it has 'Base Results'\)"):
        check_csv(written(tmp_path, b"Base Results,x\n1,2\n"), ["Base Result"])


def test_columns_without_a_name_are_no_duplicates(tmp_path):
    assert check_csv(written(tmp_path, b",,Model\n1,2,3\n"), ["Model"]) == ["", "", "Model"]


def test_a_header_of_a_million_columns_is_not_read_to_its_end(tmp_path, monkeypatch):
    taken = []

    class Endless(io.BytesIO):
        def read(self, size: int = -1) -> bytes:
            taken.append(size)
            return b"x," * (size // 2)

    monkeypatch.setattr(Path, "open", lambda path, mode: Endless())
    with pytest.raises(UserError, match="it is longer"):
        read_header(tmp_path / "t.csv")
    assert 0 < sum(taken) <= 2 * (LONGEST_HEADER + 1)


def test_a_gzip_that_unpacks_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("perfcast.bounds.UNPACKED", 10_000)
    with pytest.raises(UserError, match="at most 10000 bytes"):
        check_text(written(tmp_path, b"a,b\n" * 5000, "t.csv.gz"))


def test_an_absent_file_is_told(tmp_path):
    with pytest.raises(UserError, match="there is no such file"):
        read_header(tmp_path / "none.csv")


BODY = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(300))
PACKED = gzip.compress(BODY, mtime=0)


@LIMITED
@given(st.integers(0, len(PACKED) - 1))
def test_a_gzip_truncated_anywhere_is_refused(tmp_path_factory, length):
    path = tmp_path_factory.getbasetemp() / "cut.csv.gz"
    path.write_bytes(PACKED[:length])
    with pytest.raises(UserError, match=r"truncated|damaged|empty"):
        check_csv(path, ["a", "b"])


PACKED_XZ = lzma.compress(BODY)


@LIMITED
@given(st.integers(0, len(PACKED_XZ) - 1))
def test_an_xz_truncated_anywhere_is_refused(tmp_path_factory, length):
    path = tmp_path_factory.getbasetemp() / "cut.csv.xz"
    path.write_bytes(PACKED_XZ[:length])
    with pytest.raises(UserError, match=r"truncated|damaged|empty"):
        check_csv(path, ["a", "b"])


@LIMITED
@given(st.integers(10, len(PACKED) - 1), st.integers(1, 255))
def test_a_flipped_byte_of_a_gzip_is_refused(tmp_path_factory, at, change):
    path = tmp_path_factory.getbasetemp() / "flipped.csv.gz"
    path.write_bytes(PACKED[:at] + bytes([PACKED[at] ^ change]) + PACKED[at + 1 :])
    with pytest.raises(UserError):
        check_csv(path, ["a", "b"])


@LIMITED
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_accepted_or_told(tmp_path_factory, body, packed):
    path = written(tmp_path_factory.getbasetemp(), body, "any.csv.gz" if packed else "any.csv")
    try:
        assert "a" in check_csv(path, ["a"])
    except UserError as error:
        assert "\n" not in str(error)


def csv_of(columns) -> bytes:
    return (",".join(f'"{name}\t"' for name in columns) + "\r\n" + ",".join("1" for _ in columns) + "\r\n").encode()


def workbook(*members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member in members:
            archive.writestr(member, "<x/>")
    return buffer.getvalue()


def whole(source: str) -> dict[str, bytes]:
    """Generate the smallest files that pass the check of a source."""
    if source == "spec_cpu2006":
        return {spec_cpu2006.FILE: lzma.compress(csv_of(spec_cpu2006.COLUMNS))}
    if source == "spec_cpu2017":
        return {spec_cpu2017.FILE: gzip.compress(csv_of(spec_cpu2017.COLUMNS))}
    if source == "spec_cpu2017_detail":
        scores = spec_cpu2017_detail.BENCHMARKS
        return {name: csv_of((*spec_cpu2017_detail.SYSTEM_COLUMNS, *scores[name])) for name in scores}
    if source == "cpu_catalog":
        return {name: csv_of(columns) for name, columns in cpu_catalog.COLUMNS.items()}
    if source == "perfcastdb":
        runs = {name: csv_of(perfcastdb.COLUMNS) for name in perfcastdb.RUNS}
        return {**runs, perfcastdb.DESCRIPTION: b"# columns\n", perfcastdb.PROCESSORS: workbook("xl/workbook.xml")}
    measured = gzip.compress(csv_of(host_gemm.COLUMNS))
    return {host_gemm.MEASUREMENTS: measured, host_gemm.MACHINE: json.dumps({"threads": 2}).encode()}


PACKERS = {".gz": (gzip.decompress, gzip.compress), ".xz": (lzma.decompress, lzma.compress)}
SOURCES = ["spec_cpu2006", "spec_cpu2017", "spec_cpu2017_detail", "cpu_catalog", "perfcastdb", "host_gemm"]


def check_of(source: str, files: dict[str, bytes], folder: Path) -> None:
    for name, body in files.items():
        (folder / name).write_bytes(body)
    importlib.import_module(f"perfcast.sources.{source}").check(folder)


@pytest.mark.parametrize("source", SOURCES)
def test_whole_files_pass_the_check_of_their_source(tmp_path, source):
    check_of(source, whole(source), tmp_path)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("harm", ["absent", "empty", "truncated", "garbage"])
def test_every_harmed_file_is_named_by_the_check_of_its_source(tmp_path, source, harm):
    files = whole(source)
    for number, victim in enumerate(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        body = {"empty": b"", "truncated": files[victim][: len(files[victim]) // 2], "garbage": b"\x00\xff" * 40}.get(
            harm
        )
        harmed = {name: content for name, content in files.items() if name != victim}
        if body is not None:
            harmed[victim] = body
        if victim == perfcastdb.DESCRIPTION and harm == "truncated":
            continue
        with pytest.raises(UserError) as caught:
            check_of(source, harmed, folder)
        assert victim in str(caught.value)


@pytest.mark.parametrize("source", SOURCES)
def test_a_renamed_column_is_named_by_the_check_of_its_source(tmp_path, source):
    for number, (victim, body) in enumerate(whole(source).items()):
        if ".csv" not in victim:
            continue
        unpack, pack = PACKERS.get(Path(victim).suffix, (bytes, bytes))
        plain = unpack(body)
        renamed = plain.replace(plain[1 : plain.index(b"\t")], b"renamed", 1)
        folder = tmp_path / str(number)
        folder.mkdir()
        harmed = pack(renamed)
        with pytest.raises(UserError, match="must have a column"):
            check_of(source, {**whole(source), victim: harmed}, folder)


def test_a_zip_that_is_no_workbook_or_unpacks_too_large_is_refused(tmp_path, monkeypatch):
    files = {**whole("perfcastdb"), perfcastdb.PROCESSORS: workbook("word/document.xml")}
    with pytest.raises(UserError, match="another kind of zip"):
        check_of("perfcastdb", files, tmp_path)
    monkeypatch.setattr("perfcast.bounds.WORKBOOK", 3)
    with pytest.raises(UserError, match="at most 3 bytes"):
        check_of("perfcastdb", whole("perfcastdb"), tmp_path)
