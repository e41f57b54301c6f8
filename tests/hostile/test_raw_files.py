"""Broken raw files of every source: standardization rejects each in one line."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import yaml
from hostile_input import REPOSITORY, refused

from perfcast import plugins
from perfcast.config.conf_files import read_conf
from perfcast.domains.gemm.sources import gpperf
from perfcast.domains.servers.datasets.perfcastdb.runs_table import SKU_TABLE
from perfcast.utils.io import sha256

ROWS = 60
DATASETS = {
    "aiconfigurator": "llm_serving",
    "help": "help_nasbench201",
}
"""Source -> a dataset built from it, where its name is another one."""


@cache
def generate_files(source: str) -> Path:
    """Return a folder with the generated files of a source."""
    folder = Path(mkdtemp(prefix=f"perfcast-{source}-"))
    plugins.load("testing", source).write(folder, rows=ROWS, seed=3)
    return folder


def write_project(project: Path, source: str, file: str, content: bytes | None) -> None:
    """Write a project with one file of the source replaced; None puts a folder in its place."""
    conf = read_conf(REPOSITORY / "conf", "source", source)
    mirror = project / ("data/embedded" if conf.get("embedded") else "mirror")
    generated = generate_files(source)
    files = [path.relative_to(generated).as_posix() for path in generated.rglob("*") if path.is_file()]
    for name in files:
        for path in (mirror / name, project / "raw" / source / name):
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == file and content is None:
                path.mkdir()
            else:
                path.write_bytes(content if name == file and content is not None else (generated / name).read_bytes())
    (project / "raw" / source / "manifest.json").write_text(json.dumps({"status": "present", "source": source}))
    if not conf.get("embedded"):
        conf.pop("packed", None)
        conf["files"] = [_file_conf(name, mirror / name) for name in files]
    (project / "conf" / "source").mkdir(parents=True)
    (project / "conf" / "source" / f"{source}.yaml").write_text(yaml.safe_dump(conf))
    dataset = DATASETS.get(source, source)
    dataset_conf = read_conf(REPOSITORY / "conf", "dataset", dataset)
    required = dataset_conf["sources"]["required"]
    dataset_conf["sources"] = {"required": required, "optional": []}
    for other in required:
        if other != source:
            shutil.copytree(generate_files(other), project / "raw" / other)
            (project / "raw" / other / "manifest.json").write_text(json.dumps({"status": "present"}))
    (project / "conf" / "dataset").mkdir(parents=True)
    (project / "conf" / "dataset" / f"{dataset}.yaml").write_text(yaml.safe_dump(dataset_conf))


def _file_conf(name: str, path: Path) -> dict[str, object]:
    is_file = path.is_file()
    digest, size = (sha256(path), path.stat().st_size) if is_file else ("0" * 64, 1)
    # an empty file cannot be declared by its size
    bound = {"bytes": size} if size else {"max_bytes": 1}
    return {"name": name, "mirror": name, "url": "https://example.org/x", "sha256": digest, **bound}


MILLION = 1_000_000


def columns(text: bytes) -> bytes:
    return text.split(b"\n", 1)[0]


TEXTS = {
    "nothing": lambda text: b"",
    "NUL bytes": lambda text: bytes(5000),
    "another encoding": lambda text: text.decode("utf-8", "replace").encode("utf-16"),
    "a header alone": lambda text: columns(text) + b"\n",
    "columns renamed": lambda text: columns(text).swapcase() + b"x\n1,2\n",
    "a line without end": lambda text: b"x" * (2 * MILLION),
    "rows of nothing": lambda text: columns(text) + b"\n" + (b"," * columns(text).count(b",") + b"\n") * 3,
    "rows of a letter": lambda text: columns(text) + b"\n" + (b"x," * columns(text).count(b",") + b"x\n") * 3,
    "fields without end": lambda text: columns(text) + b'\n"' + b"x,\n" * 100_000,
}
"""Defects of the text of a CSV file."""

TABLES = {
    "spec_cpu2017": ("cpu2017-results.csv.gz", gzip.decompress, gzip.compress),
    "spec_power": (None, bytes, bytes),
    "perfcastdb": ("train_data.csv", bytes, bytes),
    "host_gemm": ("host_gemm.csv.gz", gzip.decompress, gzip.compress),
}
"""Source -> one of its tables (None: its only file), its decompression and compression."""


def file_of(source: str) -> str:
    name = TABLES[source][0]
    return name or next(path.name for path in generate_files(source).iterdir())


def assert_rejected(tmp_path, capsys, source, file, content):
    write_project(tmp_path, source, file, content)
    out = tmp_path / "out"
    places = ["--raw", tmp_path / "raw", "--table", out / "t.parquet"]
    places += ["--rejected", out / "r.csv", "--quality", out / "q.json", "--project", tmp_path]
    refused(["pipeline", "standardize", DATASETS.get(source, source), *places], capsys, out=out)


ONLY_ROWS = ("rows of nothing", "rows of a letter", "fields without end")
"""Defects of rows alone."""


@pytest.mark.parametrize("defect", TEXTS)
@pytest.mark.parametrize("source", TABLES)
def test_defective_table_is_rejected(tmp_path, capsys, source, defect):
    _, decompress, compress = TABLES[source]
    file = file_of(source)
    text = decompress((generate_files(source) / file).read_bytes())
    # rows of one of several tables are quarantined
    quarantined = defect in ONLY_ROWS and source == "perfcastdb"
    if not quarantined:
        assert_rejected(tmp_path, capsys, source, file, compress(TEXTS[defect](text)))


COMPRESSED = {
    "no stream": lambda data: b"plainly no stream",
    "half a stream": lambda data: data[: len(data) // 2],
}


@pytest.mark.parametrize("defect", COMPRESSED)
@pytest.mark.parametrize("source", ["spec_cpu2017", "host_gemm"])
def test_defective_compression_is_rejected(tmp_path, capsys, source, defect):
    file = file_of(source)
    assert_rejected(tmp_path, capsys, source, file, COMPRESSED[defect]((generate_files(source) / file).read_bytes()))


@pytest.mark.parametrize("source", [*TABLES, "gpperf", "help"])
def test_folder_in_place_of_a_file_is_rejected(tmp_path, capsys, source):
    file = {"gpperf": gpperf.ARCHIVE, "help": "nasbench201/str_arch2idx.pt"}.get(source) or file_of(source)
    write_project(tmp_path, source, file, None)
    out = tmp_path / "out"
    places = ["--out", out / "raw", "--offline", "--mirror", tmp_path / "mirror", "--strict", "--project", tmp_path]
    refused(["pipeline", "ingest", source, *places], capsys, out=out)


MACHINES = {
    "no JSON": b"{",
    "a list": b"[1, 2]",
    "a number too long": b'{"cores": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("defect", MACHINES)
def test_defective_machine_description_is_rejected(tmp_path, capsys, defect):
    assert_rejected(tmp_path, capsys, "host_gemm", "host_gemm.json", MACHINES[defect])


def write_tar(members, **options):
    """Return a compressed tar archive of (name, content) pairs."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **options) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def special(kind, name="run/results.csv", target="/etc/passwd", size=0):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, target, size
        archive.addfile(info)
    return gzip.compress(buffer.getvalue(), mtime=0)


def sparse(size):
    """Return an archive with an empty sparse file that declares a size."""
    head = bytearray(tarfile.TarInfo("run/results.csv").tobuf(tarfile.GNU_FORMAT))
    head[156:157] = tarfile.GNUTYPE_SPARSE
    head[386:398], head[398:410] = b"%011o\0" % (size - 1), b"%011o\0" % 0
    head[483:495] = b"%011o\0" % size
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return gzip.compress(bytes(head) + bytes(1024), mtime=0)


def extended(depth):
    """Return an archive in which every member is an extended header of the next one."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 0
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) * depth + bytes(1024), mtime=0)


ARCHIVES = {
    "climbs out": write_tar([("../results.csv", b"1"), ("../failed_configs.csv", b"")]),
    "a symbolic link": special(tarfile.SYMTYPE),
    "a sparse file of 8 GB": sparse(8 * 2**30 - 1),
    "headers of headers": extended(5000),
    "no tar": gzip.compress(b"no tar at all" * 200),
    "the same file twice": write_tar([("a/results.csv", b"1"), ("b/results.csv", b"2"), ("a/failed_configs.csv", b"")]),
    "a header alone": write_tar([("a/results.csv", gpperf.HEADER.encode()), ("a/failed_configs.csv", b"")]),
}


@pytest.mark.parametrize("defect", ARCHIVES)
def test_hostile_archive_is_rejected_and_not_extracted(tmp_path, capsys, defect):
    assert_rejected(tmp_path, capsys, "gpperf", gpperf.ARCHIVE, ARCHIVES[defect])
    assert not list(tmp_path.parent.glob("*.csv"))


def workbook(**members):
    """Return the generated workbook with members replaced by their short names; None removes one."""
    names = {"sheet": "xl/worksheets/sheet1.xml", "book": "xl/workbook.xml", "strings": "xl/sharedStrings.xml"}
    names |= {"types": "[Content_Types].xml", "links": "xl/_rels/workbook.xml.rels"}
    with zipfile.ZipFile(generate_files("perfcastdb") / SKU_TABLE) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content |= {names[short]: member for short, member in members.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in content.items():
            if member is not None:
                archive.writestr(name, member)
    return buffer.getvalue()


LAUGHS = (
    b'<!DOCTYPE l [<!ENTITY a "lol">'
    + b"".join(b'<!ENTITY %c "%s">' % (97 + n, b"&%c;" % (96 + n) * 10) for n in range(1, 12))
    + b"]>"
)
MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SHEET = b"<worksheet %s><sheetData>%%s</sheetData></worksheet>" % MAIN
OUTSIDE = b'<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


def inline(text: bytes) -> bytes:
    return b'<row><c t="inlineStr"><is><t>' + text + b"</t></is></c></row>"


WORKBOOKS = {
    "no zip": lambda: b"PK\x03\x04 and no more",
    "another zip": lambda: workbook(book=None),
    "half a sheet": lambda: workbook(sheet=SHEET[:40]),
    "entities of entities": lambda: workbook(sheet=LAUGHS + SHEET % inline(b"&l;")),
    "an entity from a file": lambda: workbook(sheet=OUTSIDE + SHEET % inline(b"&a;")),
    "a cell far away": lambda: workbook(sheet=SHEET % b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "a link to another file": lambda: workbook(links=b"<Relationships><Relationship/></Relationships>"),
    "cut off": lambda: workbook()[:-30],
}


@pytest.mark.parametrize("defect", WORKBOOKS)
def test_hostile_workbook_is_rejected(tmp_path, capsys, defect):
    assert_rejected(tmp_path, capsys, "perfcastdb", SKU_TABLE, WORKBOOKS[defect]())


def torch_zip(pickled: bytes, **others) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {"data.pkl": pickled, "version": b"3\n", "byteorder": b"little", **others}.items():
            archive.writestr(f"a/{name}", content)
    return buffer.getvalue()


def calls(module: str, name: str, argument: str) -> bytes:
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


PICKLES = {
    "a command": calls("os", "system", "touch {marker}"),
    "a class of the file": b"\x80\x02c__main__\nX\n)\x81.",
    "no end": b"\x80\x02]",
    "a text of 4 GB": b"\x80\x02X\xff\xff\xff\xff.",
}


@pytest.mark.parametrize("defect", PICKLES)
def test_hostile_pickle_is_rejected_and_not_executed(tmp_path, capsys, defect):
    marker = tmp_path / "executed"
    content = torch_zip(PICKLES[defect].replace(b"{marker}", str(marker).encode()))
    assert_rejected(tmp_path, capsys, "help", "nasbench201/latency/raspi4.pt", content)
    assert not marker.exists()
