"""Machine files, fields, units and names of CPU models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS as SPEC_COLUMNS
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.domains.servers.server_rules import SERVERS
from perfcast.inference import machine_files
from perfcast.inference.cells import stack_cells
from perfcast.inference.machine_fields import MachineFields, alias_field, read_number
from perfcast.inference.machine_files import MAX_NESTED_BYTES, read_entries
from perfcast.inference.name_lookup import EntityNames
from perfcast.schema.table import Column, Kind, Role
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor"),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", "", low=1, high=512),
    Column("clock", Kind.NUMERICAL, Role.FEATURE, "processor", "MHz", low=800),
    Column("available", Kind.DATE, Role.PROVENANCE, "provenance"),
)
TABLE_FIELDS = MachineFields(
    COLUMNS, (alias_field("title", "part", "the part", "x"), alias_field("memory.rate", "clock", "rate", "1 GHz"))
)
SERVER = MachineFields(SPEC_COLUMNS, SERVER_FIELDS)
NAMES = EntityNames(
    SERVERS,
    [
        *("epyc 9654", "epyc 9654p", "xeon platinum 8592+", "xeon platinum 8592v", "core i5-8600", "epyc 9755"),
        *("xeon 6740e", "xeon 6980p", "xeon e5-2690", "ryzen 9 7950x"),
    ],
)


def read(folder: Path, text: str | bytes, ending: str = "csv"):
    path = folder / f"machines.{ending}"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    entries = read_entries(path)
    cells = [TABLE_FIELDS.cells(entry.values, entry.label) for entry in entries]
    return stack_cells(cells, TABLE_FIELDS.columns.values()).to_frame().set_axis([entry.line for entry in entries])


def test_reads_any_subset_of_columns_in_any_order(tmp_path):
    frame = read(tmp_path, "\ufeffavailable, Cores ,title\n2026-03,96,x\n\n,, \n ,8,\n")
    assert list(frame.columns) == ["part", "cores", "clock", "available"]
    assert list(frame.index) == [2, 5]
    assert frame["cores"].tolist() == [96.0, 8.0]
    assert frame.loc[2, "part"] == "x"
    assert f"{frame.loc[2, 'available']:%Y-%m-%d}" == "2026-03-01"
    assert frame.loc[5, ["part", "available", "clock"]].isna().all()


DESCRIBED = {"title": "x", "cores": 96, "memory.rate": "3.2 GHz", "available": "2026-03"}
YAML = "title: x\ncores: 96\nmemory.rate: 3.2 GHz\navailable: 2026-03\n"


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("title,cores,memory.rate,available\nx,96,3.2 GHz,2026-03\n", "csv"),
        (json.dumps(DESCRIBED), "json"),
        (json.dumps([DESCRIBED]), "json"),
        (json.dumps({"machines": [DESCRIBED]}), "json"),
        (YAML, "yaml"),
        ("machines:\n- " + YAML.replace("\n", "\n  "), "yml"),
    ],
)
def test_every_file_format_gives_the_same_machine(tmp_path, text, ending):
    row = read(tmp_path, text, ending).iloc[0]
    assert row[["part", "cores", "clock"]].tolist() == ["x", 96.0, 3200.0]
    assert f"{row['available']:%Y-%m}" == "2026-03"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        (" \n", ["empty"]),
        ("cores\n", ["describes none"]),
        ("coers\n8\n", ["'coers'", "nearest are cores"]),
        ("cores,\n8,1\n", ["column 2 has none"]),
        ("cores,cores\n1,1\n", ["'cores' once", "column 2 repeats it"]),
        ("part,title\na,b\n", ["part and title must agree", "line 2"]),
        ("cores,clock\n8\n", ["line 2 has 1"]),
        ("part,cores\na,8\n\nb,many\n", ["cores must be a number", "line 4 has 'many'"]),
        ("clock\n1e999\n", ["clock must be a number in MHz", "line 2"]),
        ("clock\n3.5 W\n", ["clock must be a number in MHz", "mhz, ghz"]),
        ("cores\n3 MHz\n", ["without a unit"]),
        ("cores\nnan\n", ["line 2 has 'nan'"]),
        ("cores\n0\n", ["between 1 and 512", "line 2 has 0"]),
        ("clock\n3.2\n", ["between 800 and inf in MHz"]),
        ("available\n2026-13\n", ["month such as 2026-03", "'2026-13'"]),
        ('part\n"a\n', ["must be CSV"]),
        (b"part\nok\n\xff\xfe\n", ["UTF-8", "line 3"]),
        ("part\n" + "x" * 600 + "\n", ["at most 500 letters"]),
        ("part\n" + "x" * 200_000 + "\n", ["must be CSV", "field larger"]),
        (",".join(f"c{n}" for n in range(20_000)) + "\n" + "," * 19_999 + "1\n", ["at most 1000 columns"]),
    ],
)
def test_bad_csv_is_refused_in_one_line(tmp_path, text, words):
    refused(tmp_path, text, "csv", words)


@pytest.mark.parametrize(
    ("text", "ending", "words"),
    [
        ("{", "json", ["must be JSON"]),
        ('{"cores": NaN}', "json", ["finite", "NaN"]),
        ('{"cores": 1, "cores": 2}', "json", ["unique"]),
        ('{"cores": [1]}', "json", ["cores must be one value"]),
        ('{"cores": {"a": 1}}', "json", ["cores must be one value"]),
        ("[1, 2]", "json", ["machine 1 is '1'"]),
        ("[]", "json", ["describes none"]),
        ("[" * 100_000, "json", ["deep at most"]),
        ("a: [", "yaml", ["must be YAML", "line 1"]),
        ("cores: 1\ncores: 2\n", "yaml", ["a name is repeated"]),
        ("1: 2\n", "yaml", ["names", "must be text"]),
        ("a: &x [1]\nb: *x\n", "yaml", ["references"]),
        ("cores: !!python/object/apply:os.system ['true']\n", "yaml", ["must be YAML"]),
        ("just text\n", "yaml", ["'just text'"]),
        ("cores: 1", "toml", ["must end in .csv, .json"]),
    ],
)
def test_bad_json_and_yaml_are_refused_in_one_line(tmp_path, text, ending, words):
    refused(tmp_path, text, ending, words)


def refused(folder, text, ending, words):
    with pytest.raises(UserError) as error:
        read(folder, text, ending)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_read_entries_refuses_ten_megabytes(tmp_path):
    path = tmp_path / "m.json"
    path.write_bytes(b" " * (MAX_NESTED_BYTES + 1))
    with pytest.raises(UserError, match="smaller than 10 MiB"):
        read_entries(path)


def test_read_entries_bounds_the_size_of_a_table(tmp_path, monkeypatch):
    path = tmp_path / "machines.csv"
    path.write_bytes(b"cores\n8\n")
    assert read_entries(path) == [(2, "line 2", {"cores": "8"}, {})]
    monkeypatch.setattr(machine_files, "MAX_BYTES", 5)
    with pytest.raises(UserError, match="smaller than"):
        read_entries(path)


def test_read_entries_refuses_an_absent_file(tmp_path):
    with pytest.raises(UserError, match="no file"):
        read_entries(tmp_path / "machines.csv")


@given(st.text(max_size=40), st.text(max_size=40))
def test_cells_parses_any_text_or_refuses_it_in_one_line(word, value):
    try:
        cells = TABLE_FIELDS.cells({word: value}, "machine 1")
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert set(cells) <= {"part", "cores", "clock", "available"}


@pytest.mark.parametrize(
    ("words", "unit", "value"),
    [
        ("3.7 GHz", "MHz", 3700.0),
        ("2400", "MHz", 2400.0),
        ("384 MB", "MiB", 384.0),
        ("0.5TB", "GiB", 512.0),
        ("1536gb", "GiB", 1536.0),
        ("2 TB", "GB", 2000.0),
        ("6400 MT/s", "MT/s", 6400.0),
        ("1e2", "", 100.0),
    ],
)
def test_read_number_accepts_usual_units(words, unit, value):
    assert read_number(words, unit) == value


@pytest.mark.parametrize(("words", "unit"), [("3.7 GHz", "W"), ("5 parsecs", "MHz"), ("fast", "MHz"), ("1e999", "W")])
def test_read_number_refuses_other_units_and_texts(words, unit):
    with pytest.raises(ValueError, match="it"):
        read_number(words, unit)


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("AMD EPYC(TM) 9654 96-Core Processor", "epyc 9654"),
        ("epyc9654", "epyc 9654"),
        ("EPYC-9755", "epyc 9755"),
        ("9755", "epyc 9755"),
        ("Xeon Platinum 8592+", "xeon platinum 8592+"),
        ("epyc_9755", "epyc 9755"),
        ("i5-8600", "core i5-8600"),
        ("Platinum 8592+", "xeon platinum 8592+"),
        ("Xeon 8592+", "xeon platinum 8592+"),
        ("Intel(R) Xeon(R) 6 6980P", "xeon 6980p"),
        ("Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz", "xeon e5-2690"),
        ("Ryzen 7950X", "ryzen 9 7950x"),
    ],
)
def test_cpu_names_finds_spelling_variants(typed, key):
    assert NAMES.find(typed).key == key


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("8592", ("xeon platinum 8592+", "xeon platinum 8592v")),
        ("xeon platinum", ("xeon platinum 8592+", "xeon platinum 8592v")),
        ("epyc 9756", ("epyc 9755",)),
        ("eypc 9755", ("epyc 9755",)),
        ("Xeon 6740P", ("xeon 6740e",)),
        ("6740P", ("xeon 6740e",)),
        ("Ryzen 5 7950X", ("ryzen 9 7950x",)),
        ("epyc 8592+", ("xeon platinum 8592+",)),
        ("E5-2690 v3", ("xeon e5-2690",)),
        ("snapdragon", ()),
    ],
)
def test_cpu_names_never_guesses(typed, candidates):
    match = NAMES.find(typed)
    assert match.key is None
    assert match.candidates[: len(candidates)] == candidates


GROUPED = EntityNames(
    SERVERS,
    ["epyc 9654", "xeon 6980e+", "apple m1", "apple m1 max", "epyc embedded 9654", "xeon 6990e+"],
    [
        *(("Clearwater Forest", "xeon 6980e+"), ("Clearwater Forest", "xeon 6990e+"), ("Xeon 6+ E", "xeon 6990e+")),
        *(("Apple M", "apple m1"), ("Apple M", "apple m1 max"), ("Apple", "apple m1"), ("Genoa", "epyc 9654")),
    ],
)


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("Clearwater Forest", ("xeon 6980e+", "xeon 6990e+")),
        ("Xeon 6+", ("xeon 6990e+",)),
        ("Apple M4", ("apple m1", "apple m1 max")),
        ("Apple", ("apple m1", "apple m1 max")),
        ("genoa", ("epyc 9654",)),
    ],
)
def test_a_family_series_or_vendor_offers_its_models(typed, candidates):
    match = GROUPED.find(typed)
    assert match.key is None and match.candidates == candidates


def test_a_number_names_the_model_without_further_words():
    match = GROUPED.find("AMD 9654")
    assert (match.key, match.exact, match.candidates) == ("epyc 9654", False, ("epyc embedded 9654",))


@pytest.mark.parametrize(
    ("values", "field"),
    [({"memory.rate": "9 MHz"}, "memory.rate must be between"), ({"Clock": "fast"}, "Clock must be a number in MHz")],
)
def test_errors_name_the_field_as_typed(values, field):
    with pytest.raises(UserError, match=rf"^{field}"):
        TABLE_FIELDS.cells(values, "line 2")


@pytest.mark.parametrize("field", SERVER_FIELDS, ids=lambda field: field.name)
def test_every_field_parses_its_example(field):
    cells, remark = field.read(field.example)
    assert cells
    assert not remark
    assert set(cells) <= set(field.columns)


def test_memory_field_accepts_both_spellings():
    memory = next(field for field in SERVER_FIELDS if field.name == "memory")
    short, published = (
        memory.read(text).cells for text in ("24 x 64 GB DDR5-6400", "1536 GB (24 x 64 GB PC5-6400B-R)")
    )
    assert {name: published[name] for name in short} == dict(short)
    assert memory.read("1.5 TB").cells == {"mem_total_gb": 1536.0}


def parse_server(values):
    return SERVER.parse(values, "machine 1")


@pytest.mark.parametrize("name", ["os", "compiler", "storage"])
def test_texts_that_are_not_understood_are_ignored_with_a_note(name):
    cells, _, notes = parse_server({"chips": 2, name: "banana"})
    assert cells == {"chips": 2.0}
    assert [note.startswith(f"{name} 'banana' was ignored: ") for note in notes] == [True]


@pytest.mark.parametrize("text", ["banana", "1536", "24x64x2", "lots of memory", "4096 x 16 GB DDR5-4800"])
def test_memory_without_a_size_or_beyond_limits_is_refused(text):
    with pytest.raises(UserError, match=r"^memory.* must be .*but machine 1 has") as error:
        parse_server({"chips": 2, "memory": text})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "modules", "size"),
    [("24x64", 24, 64), ("64GBx24", 24, 64), ("16x32", 16, 32), ("12 × 96 DDR5-5600", 12, 96), ("64G*24", 24, 64)],
)
def test_memory_as_modules_times_size(text, modules, size):
    cells, _, notes = parse_server({"memory": text})
    assert (cells["dimm_count"], cells["dimm_gb"], notes) == (modules, size, ())


COUNTED = ["{n}x {name}", "{n} x {name}", "{n}× {name}", "{n}S {name}", "{n}P {name}", "{n}-socket {name}"]
WORDS = {1: "single {name}", 2: "dual {name}", 4: "Quad-socket {name}"}


@given(st.integers(1, 63), st.sampled_from([*COUNTED, "word"]), st.sampled_from(NAMES.keys), st.booleans())
def test_a_number_before_a_name_is_that_of_processors(number, form, name, is_upper):
    text = (WORDS.get(number, "{n} {name}") if form == "word" else form).format(n=number, name=name)
    cells = parse_server({"cpu": text.upper() if is_upper else text}).cells
    if form == "word" and number not in WORDS:
        assert "chips" not in cells
        return
    assert (cells["cpu_model"].lower(), cells["chips"]) == (name, number)
    with pytest.raises(UserError, match="must agree"):
        parse_server({"processor": text, "chips": number + 1})


def test_a_dual_core_processor_is_one():
    assert parse_server({"processor": "Dual-Core AMD Opteron 2218"}).cells == {
        "cpu_model": "Dual-Core AMD Opteron 2218"
    }


def test_texts_that_contradict_themselves_are_read_in_part():
    cells, _, (note,) = parse_server({"memory": "512 GB (16 x 64 GB 2Rx4 PC5-4800B-R)"})
    assert (cells["dimm_count"], cells["mem_total_gb"]) == (16.0, 1024.0)
    assert "was read in part, as mem_total_gb 1024" in note


def test_a_text_that_is_understood_has_no_note():
    machine = {"memory": "24 x 64 GB 2Rx4 PC5-8800X-M", "storage": "1 x 960 GB", "os": "rhel9.4", "compiler": "gcc 13"}
    assert parse_server(machine).notes == ()
