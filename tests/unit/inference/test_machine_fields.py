"""Machine files, fields, units and names of CPU models, known and new; a changed number is never another model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from champion_project import KNOWN, predict, project
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import COLUMNS as SPEC_COLUMNS
from perfcast.domains.servers.processors.cpu_models import read_cpu_models
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.domains.servers.server_rules import SERVERS
from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.inference import PredictOptions, machine_files, read_machines
from perfcast.inference.cells import stack_cells
from perfcast.inference.machine_fields import MachineFields, alias_field, read_number
from perfcast.inference.machine_files import MAX_NESTED_BYTES, read_entries, read_table
from perfcast.inference.name_lookup import EntityNames
from perfcast.inference.parse import parse_machine
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
    SERVERS.names,
    [
        "epyc 9654",
        "epyc 9654p",
        "xeon platinum 8592+",
        "xeon platinum 8592v",
        "core i5-8600",
        "epyc 9755",
        "xeon 6740e",
        "xeon 6980p",
        "xeon e5-2690",
        "ryzen 9 7950x",
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
    assert read(tmp_path, "title,Cores (#)\nx,8\n")["cores"].tolist() == [8.0], "as a spreadsheet names a column"
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
        ("cores\n", ["describes none"]),
        ("coers\n8\n", ["'coers'", "nearest are cores"]),
        ("cores,\n8,1\n", ["column 2 has none"]),
        ("part,title\na,b\n", ["part and title must agree", "line 2"]),
        ("part,cores\na,8\n\nb,many\n", ["cores must be a number", "line 4 has 'many'"]),
        ("clock\n3.5 W\n", ["clock must be a number in MHz", "mhz, ghz"]),
        ("memory.rate\n9 MHz\n", ["memory.rate must be between 800 and inf in MHz"]),
        ("cores\n3 MHz\n", ["without a unit"]),
        ("cores\n0\n", ["between 1 and 512", "line 2 has 0"]),
        ("available\n2026-13\n", ["month such as 2026-03", "'2026-13'"]),
        (b"part\nok\n\xff\xfe\n", ["UTF-8", "line 3"]),
        ("part\n" + "x" * 600 + "\n", ["at most 500 letters"]),
    ],
)
def test_bad_csv_is_refused_in_one_line(tmp_path, text, words):
    """Others, and JSON and YAML, are in `tests/hostile/test_machine_files.py`."""
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_read_entries_bounds_the_size(tmp_path, monkeypatch):
    nested, table = tmp_path / "m.json", tmp_path / "machines.csv"
    nested.write_bytes(b" " * (MAX_NESTED_BYTES + 1))
    table.write_bytes(b"cores\n8\n")
    assert read_entries(table) == [(2, "line 2", {"cores": "8"}, {})]
    monkeypatch.setattr(machine_files, "MAX_BYTES", 5)
    for path, words in ((nested, "smaller than 10 MiB"), (table, "smaller than")):
        with pytest.raises(UserError, match=words):
            read_entries(path)


@given(st.lists(st.lists(st.from_regex(r"[ -!#-+.-:<-~]{1,8}", fullmatch=True), min_size=2, max_size=2), min_size=1))
def test_table_is_read_alike_with_every_delimiter(rows):
    header = ["cores", "title"]
    read = [[*read_table("m", "\n".join(map(each.join, [header, *rows])))] for each in ",\t;"]
    assert read[0] == read[1] == read[2]
    assert [[*entry.values.values()] for entry in read[0]] == [row for row in rows if any(map(str.strip, row))]


@given(st.text(max_size=200))
def test_any_text_is_a_table_or_one_line(text):
    try:
        assert all(entry.values for entry in read_table("m", text))
    except UserError as error:
        assert "\n" not in str(error)


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
        ("3.7 GHz", "W", None),
        ("5 parsecs", "MHz", None),
        ("fast", "MHz", None),
        ("1e999", "W", None),
    ],
)
def test_read_number_accepts_usual_units_alone(words, unit, value):
    if value is None:
        with pytest.raises(ValueError, match="it"):
            read_number(words, unit)
    else:
        assert read_number(words, unit) == value


VARIANTS = {
    "epyc 9654": ("AMD EPYC(TM) 9654 96-Core Processor", "epyc9654"),
    "epyc 9755": ("EPYC-9755", "9755", "epyc_9755"),
    "xeon platinum 8592+": ("Xeon Platinum 8592+", "Platinum 8592+", "Xeon 8592+"),
    "core i5-8600": ("i5-8600",),
    "xeon 6980p": ("Intel(R) Xeon(R) 6 6980P",),
    "xeon e5-2690": ("Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz",),
    "ryzen 9 7950x": ("Ryzen 7950X",),
}
OFFERED = {
    ("xeon platinum 8592+", "xeon platinum 8592v"): ("8592", "xeon platinum"),
    ("epyc 9755",): ("epyc 9756", "eypc 9755"),
    ("xeon 6740e",): ("Xeon 6740P", "6740P"),
    ("ryzen 9 7950x",): ("Ryzen 5 7950X",),
    ("xeon platinum 8592+",): ("epyc 8592+",),
    ("xeon e5-2690",): ("E5-2690 v3",),
    (): ("snapdragon",),
}


def test_cpu_names_finds_spelling_variants_and_never_guesses():
    for key, variants in VARIANTS.items():
        assert {NAMES.find(typed).key for typed in variants} == {key}
    for candidates, variants in OFFERED.items():
        for match in map(NAMES.find, variants):
            assert match.key is None
            assert match.candidates[: len(candidates)] == candidates


def test_a_family_series_or_vendor_offers_its_models():
    grouped = EntityNames(
        SERVERS.names,
        ["epyc 9654", "xeon 6980e+", "apple m1", "apple m1 max", "epyc embedded 9654", "xeon 6990e+"],
        [
            ("Clearwater Forest", "xeon 6980e+"),
            ("Clearwater Forest", "xeon 6990e+"),
            ("Xeon 6+ E", "xeon 6990e+"),
            ("Apple M", "apple m1"),
            ("Apple M", "apple m1 max"),
            ("Apple", "apple m1"),
            ("Genoa", "epyc 9654"),
        ],
    )
    expected = {
        "Clearwater Forest": ("xeon 6980e+", "xeon 6990e+"),
        "Xeon 6+": ("xeon 6990e+",),
        "Apple M4": ("apple m1", "apple m1 max"),
        "Apple": ("apple m1", "apple m1 max"),
        "genoa": ("epyc 9654",),
    }
    matches = {typed: grouped.find(typed) for typed in expected}
    assert {typed: match.candidates for typed, match in matches.items() if match.key is None} == expected
    match = grouped.find("AMD 9654")
    assert (match.key, match.exact, match.candidates) == ("epyc 9654", False, ("epyc embedded 9654",))


@pytest.mark.parametrize("field", SERVER_FIELDS, ids=lambda field: field.name)
def test_every_field_parses_its_example(field):
    cells, remark = field.read(field.example)
    assert cells
    assert not remark
    assert set(cells) <= set(field.columns)


def parse_server(values):
    return SERVER.parse(values, "machine 1")


@pytest.mark.parametrize("text", ["banana", "1536", "24x64x2", "lots of memory", "4096 x 16 GB DDR5-4800"])
def test_memory_without_a_size_or_beyond_limits_is_refused(text):
    with pytest.raises(UserError, match=r"^memory.* must be .*but machine 1 has") as error:
        parse_server({"chips": 2, "memory": text})
    assert "\n" not in str(error.value)


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


@pytest.mark.parametrize(
    ("machine", "cells", "note"),
    [
        *(({name: "banana"}, {}, f"{name} 'banana' was ignored: ") for name in ("os", "compiler", "storage")),
        ({"memory": "24x64"}, {"dimm_count": 24, "dimm_gb": 64}, None),
        ({"memory": "64GBx24"}, {"dimm_count": 24, "dimm_gb": 64}, None),
        ({"memory": "64G*24"}, {"dimm_count": 24, "dimm_gb": 64}, None),
        ({"memory": "12 × 96 DDR5-5600"}, {"dimm_count": 12, "dimm_gb": 96}, None),
        (
            {"memory": "1536 GB (24 x 64 GB PC5-6400B-R)"},
            {"dimm_count": 24, "dimm_gb": 64, "mem_rated_mts": 6400},
            None,
        ),
        ({"memory": "24 x 64 GB 2Rx4 PC5-8800X-M"}, {"dimm_count": 24, "dimm_gb": 64}, None),
        ({"memory": "1.5 TB"}, {"mem_total_gb": 1536}, None),
        ({"memory": "512 GB (16 x 64 GB 2Rx4 PC5-4800B-R)"}, {"dimm_count": 16}, "read in part, as mem_total_gb 1024"),
        ({"storage": "1 x 960 GB", "os": "rhel9.4", "compiler": "gcc 13"}, {"os_name": "RHEL"}, None),
        ({"processor": "Dual-Core AMD Opteron 2218"}, {"cpu_model": "Dual-Core AMD Opteron 2218"}, None),
    ],
)
def test_texts_are_read_whole_or_in_part_or_ignored_with_a_note(machine, cells, note):
    read, _, notes = parse_server({"threads_per_core": 2, **machine})
    assert {name: read.get(name) for name in cells} == cells
    assert "chips" not in read
    assert [note in each for each in notes] == ([True] if note else [])


def parse(machine):
    (entry,) = read_machines(machine)
    parsed = parse_machine(entry, project().champion)
    return parsed.cells, " ".join(parsed.notes)


@pytest.mark.parametrize(
    ("name", "normalized", "design", "cells"),
    [
        ("Intel(R) Xeon(R) Gold 6599Y CPU @ 2.00GHz", "xeon gold 6599y", "Emerald Rapids", {}),
        ("XeonGold6599Y", "xeon gold 6599y", "Emerald Rapids", {}),
        ("Ampere Altra Q72-26", "altra q72-26", "Altra", {"cores_per_chip_of_cpu_model": 72.0, "base_mhz": 2600.0}),
        ("Xeon Future", "Xeon Future", "", {"cpu_vendor": "Intel", "isa": "x86"}),
        ("Zeus 1", "Zeus 1", "", {}),
    ],
)
def test_read_cpu_name_returns_what_a_name_tells(name, normalized, design, cells):
    assert RULES.names.read_entity_name(name) == (normalized, design, cells)


def test_a_name_of_a_known_design_is_enough():
    cells, note = parse({"processor": "Xeon Gold 6199", "chips": 2})
    assert cells == {"cpu_model": "xeon gold 6199", "chips": 2.0}
    assert "no data names the processor 'Xeon Gold 6199'" in note
    assert "the design Skylake-SP, which was measured; add cores, clock, turbo, tdp, l3" in note
    (prediction,) = predict({"processor": "Xeon Gold 6199", "chips": 2}, options=PredictOptions(neighbors=0))
    origins = {value.column: value.origin for value in prediction.values}
    assert [origins[name] for name in ("family", "cores_per_chip_of_cpu_model", "base_mhz")] == [
        "looked up",
        "assumed",
        "assumed",
    ]


def test_a_name_that_tells_nothing_needs_cores_and_clock_only():
    with pytest.raises(UserError, match=r"^processor must be .*'Zeus 1'; describe a new one: add cores, clock$"):
        parse({"processor": "Zeus 1", "chips": 2})
    described = {"processor": "Zeus 1", "chips": 2, "cores": 32, "clock": "2.5 GHz"}
    assert "its design included; add family, turbo, tdp, l3 to narrow" in parse(described)[1]
    (prediction,) = predict(described, options=PredictOptions(neighbors=0))
    assert {value.column: value.origin for value in prediction.values}["family"] == "assumed"
    (known,) = predict({"processor": KNOWN["processor"], "chips": 2}, options=PredictOptions())
    assert prediction.estimates[0].in_domain_score < known.estimates[0].in_domain_score


def test_another_model_number_is_never_answered_as_a_known_one():
    cells, note = parse({"processor": "Xeon Gold 6148Z", "chips": 2})
    assert cells["cpu_model"] == "xeon gold 6148z"
    assert "known names: xeon gold 6148" in note


def test_a_given_family_replaces_that_of_the_name():
    cells, note = parse({"processor": "Xeon Gold 6199", "family": "Cascade Lake-SP", "chips": 2})
    assert cells["family"] == "Cascade Lake-SP"
    assert "the design Cascade Lake-SP" in note


LISTED = sorted(read_cpu_models().index)
_JOINT = re.compile(r"[\s_.,;:/-]+")
_TIER = re.compile(r"\b(xeon|ryzen|ultra) \d(?= )")


def split_name(name: str) -> tuple[str, str]:
    """Return the line of a name and its model number: everything from the first word with a digit."""
    words = _TIER.sub(r"\1", name).split()
    first = next((place for place, word in enumerate(words) if any(map(str.isdigit, word))), len(words))
    number = " ".join(words[first:])
    return name.removesuffix(number), number


def mutate(number: str) -> Iterator[str]:
    """Yield the number without each of its characters, and with each letter or digit replaced by the next one."""
    for place, letter in enumerate(number):
        if letter.isalnum():
            yield number[:place] + number[place + 1 :]
            base, count = ("0", 10) if letter.isdigit() else ("a", 26)
            yield number[:place] + chr(ord(base) + (ord(letter) - ord(base) + 1) % count) + number[place + 1 :]


def find_misreadings(keys: list[str]) -> list[tuple[str, str]]:
    """Return mutated names and the CPU models of other numbers that they were taken for."""
    names = EntityNames(SERVERS.names, keys)
    wrong = []
    for name in keys:
        line, number = split_name(name)
        for mutated in set(mutate(number)):
            key = names.find(line + mutated).key
            if key in (None, line + mutated):  # no name, or the very name of another one, as graviton of graviton2
                continue
            if _JOINT.sub("", split_name(key)[1]) != _JOINT.sub("", mutated):
                wrong.append((line + mutated, key))
    return wrong


def test_no_listed_name_with_a_changed_character_is_another_cpu_model():
    assert len(LISTED) > 100
    assert find_misreadings(LISTED) == []


@pytest.mark.parametrize("name", ["Xeon Gold 6149", "Xeon Gold 6148X"])
def test_predictions_of_changed_names_are_not_those_of_the_known_model(name):
    (changed,) = predict({**KNOWN, "processor": name})
    assert "6148," not in f"{changed.machine},"
