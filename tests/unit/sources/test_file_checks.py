import gzip
import io
import json
import lzma
import zipfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.config.conf_files import conf_files
from perfcast.domains.servers.sources import perfcastdb
from perfcast.sources.file_checks import MAX_HEADER_BYTES, check_csv, check_text, read_header
from perfcast.sources.ingestion import check_structure
from perfcast.sources.source_spec import SourceSpec, parse_source
from perfcast.utils.errors import UserError

LIMITED = settings(max_examples=100, deadline=None)


def compress_as(name: str, body: bytes) -> bytes:
    """Return the content of a file of this name."""
    compressors = {".gz": lambda: gzip.compress(body, mtime=0), ".xz": lambda: lzma.compress(body)}
    return compressors.get(Path(name).suffix, lambda: body)()


def write_file(folder: Path, body: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(compress_as(name, body))
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz"])
def test_read_header_strips_blanks_mark_and_line_ending(tmp_path, name):
    path = write_file(tmp_path, b'\xef\xbb\xbf"Hardware Vendor\t",Processor ,"a, b"\r\n1,2,3\r\n', name)
    assert read_header(path) == ["Hardware Vendor", "Processor", "a, b"]
    assert check_csv(path, ["Processor"]) == ["Hardware Vendor", "Processor", "a, b"]


@pytest.mark.parametrize(
    ("body", "message"),
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
        (b"a,b\n1,\xc3", "line 2 is not"),
        (b",".join(b"c%d" % i for i in range(1_000_000)) + b"\n", "at most 65536 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz"])
def test_check_csv_reports_a_defect_in_one_line(tmp_path, name, body, message):
    with pytest.raises(UserError, match=message) as caught:
        check_csv(write_file(tmp_path, body, name), ["a", "b"])
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_check_csv_suggests_the_nearest_column(tmp_path):
    with pytest.raises(UserError, match=r"'Base Result'.*none of that name \(but there is 'Base Results'\)"):
        check_csv(write_file(tmp_path, b"Base Results,x\n1,2\n"), ["Base Result"])


def test_check_csv_accepts_several_columns_without_a_name(tmp_path):
    assert check_csv(write_file(tmp_path, b",,Model\n1,2,3\n"), ["Model"]) == ["", "", "Model"]


def test_read_header_stops_in_a_header_of_a_million_columns(tmp_path, monkeypatch):
    sizes = []

    class Endless(io.BytesIO):
        def read(self, size: int = -1) -> bytes:
            sizes.append(size)
            return b"x," * (size // 2)

    monkeypatch.setattr(Path, "open", lambda path, mode: Endless())
    with pytest.raises(UserError, match="it is longer"):
        read_header(tmp_path / "t.csv")
    assert 0 < sum(sizes) <= 2 * (MAX_HEADER_BYTES + 1)


def test_check_text_stops_a_gzip_that_decompresses_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("perfcast.utils.size_limits.UNPACKED", 10_000)
    with pytest.raises(UserError, match="at most 10000 bytes"):
        check_text(write_file(tmp_path, b"a,b\n" * 5000, "t.csv.gz"))


def test_read_header_reports_an_absent_file(tmp_path):
    with pytest.raises(UserError, match="there is no such file"):
        read_header(tmp_path / "none.csv")


BODY = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(300))
COMPRESSED = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(("name", "content"), [("cut.csv.gz", COMPRESSED), ("cut.csv.xz", lzma.compress(BODY))])
@LIMITED
@given(share=st.floats(0, 1, exclude_max=True))
def test_check_csv_rejects_a_file_truncated_anywhere(tmp_path_factory, name, content, share):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=r"truncated|damaged|empty"):
        check_csv(path, ["a", "b"])


@LIMITED
@given(st.integers(10, len(COMPRESSED) - 1), st.integers(1, 255))
def test_check_csv_rejects_a_gzip_with_a_flipped_byte(tmp_path_factory, at, change):
    path = tmp_path_factory.getbasetemp() / "flipped.csv.gz"
    path.write_bytes(COMPRESSED[:at] + bytes([COMPRESSED[at] ^ change]) + COMPRESSED[at + 1 :])
    with pytest.raises(UserError):
        check_csv(path, ["a", "b"])


@LIMITED
@given(st.binary(max_size=300), st.booleans())
def test_check_csv_accepts_or_reports_any_bytes(tmp_path_factory, body, compressed):
    path = write_file(tmp_path_factory.getbasetemp(), body, "any.gz" if compressed else "any")
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


def spec_of(source: str) -> SourceSpec:
    """Return a source as conf declares it."""
    path = conf_files(Path(__file__).parents[3] / "conf", "source")[source]
    return parse_source(source, yaml.safe_load(path.read_text(encoding="utf-8")))


def valid_files(source: str) -> dict[str, bytes]:
    """Return the smallest files that pass the check of a source."""
    described = {file.name: json.dumps({"threads": 2}).encode() for file in spec_of(source).snapshots[0].files}
    if source == "perfcastdb":
        described |= {perfcastdb.DESCRIPTION: b"# columns\n", perfcastdb.PROCESSORS: workbook("xl/workbook.xml")}
    tables = {name: csv_of(columns) for name, columns in spec_of(source).columns.items()}
    return {**described, **{name: compress_as(name, body) for name, body in tables.items()}}


CODECS = {".gz": (gzip.decompress, gzip.compress), ".xz": (lzma.decompress, lzma.compress)}
SOURCES = [
    *("spec_cpu2006", "spec_cpu2017", "spec_cpu2017_detail", "spec_jbb2015", "spec_power"),
    *("cpu_catalog", "perfcastdb", "host_gemm"),
]


def run_check(source: str, files: dict[str, bytes], folder: Path) -> None:
    for name, body in files.items():
        (folder / name).write_bytes(body)
    check_structure(spec_of(source), folder)


@pytest.mark.parametrize("source", SOURCES)
def test_check_accepts_valid_files(tmp_path, source):
    run_check(source, valid_files(source), tmp_path)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("damage", ["absent", "empty", "truncated", "garbage"])
def test_check_names_every_damaged_file(tmp_path, source, damage):
    files = valid_files(source)
    for number, victim in enumerate(files):
        folder = tmp_path / str(number)
        folder.mkdir()
        body = {"empty": b"", "truncated": files[victim][: len(files[victim]) // 2], "garbage": b"\x00\xff" * 40}.get(
            damage
        )
        damaged = {name: content for name, content in files.items() if name != victim}
        if body is not None:
            damaged[victim] = body
        if victim == perfcastdb.DESCRIPTION and damage == "truncated":
            continue
        with pytest.raises(UserError) as caught:
            run_check(source, damaged, folder)
        assert victim in str(caught.value)


@pytest.mark.parametrize("source", SOURCES)
def test_check_names_a_renamed_column(tmp_path, source):
    for number, (victim, body) in enumerate(valid_files(source).items()):
        if ".csv" not in victim:
            continue
        decompress, compress = CODECS.get(Path(victim).suffix, (bytes, bytes))
        plain = decompress(body)
        renamed = plain.replace(plain[1 : plain.index(b"\t")], b"renamed", 1)
        folder = tmp_path / str(number)
        folder.mkdir()
        damaged = compress(renamed)
        with pytest.raises(UserError, match="must have a column"):
            run_check(source, {**valid_files(source), victim: damaged}, folder)


def test_check_rejects_a_zip_that_is_not_a_workbook_or_too_large(tmp_path, monkeypatch):
    files = {**valid_files("perfcastdb"), perfcastdb.PROCESSORS: workbook("word/document.xml")}
    with pytest.raises(UserError, match="another kind of zip"):
        run_check("perfcastdb", files, tmp_path)
    monkeypatch.setattr("perfcast.utils.size_limits.WORKBOOK", 3)
    with pytest.raises(UserError, match="at most 3 bytes"):
        run_check("perfcastdb", valid_files("perfcastdb"), tmp_path)
