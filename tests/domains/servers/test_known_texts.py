"""Texts as people and publishers write them, and what each says: the lines of `known_texts.csv`."""

import csv
import json
from pathlib import Path

import pytest

from perfcast.domains.servers.datasets.perfcastdb.run_values import decode_part_number
from perfcast.domains.servers.datasets.spec_java.power import (
    READERS,
    java_cpu_model_key,
)
from perfcast.domains.servers.hardware_info import find_cpu_model
from perfcast.domains.servers.parsing import cache, memory, names, scalars, software
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import look_up_facts

with (Path(__file__).parent / "known_texts.csv").open(encoding="utf-8", newline="") as file:
    ROWS = [
        (
            row["parser"],
            row["text"],
            json.loads(row["expected"]),
        )
        for row in csv.DictReader(file)
    ]
NAMED = (
    cache.parse_l1,
    cache.parse_l2,
    cache.parse_l3,
    cache.parse_other_cache,
    cpu_model_key,
    decode_part_number,
    find_cpu_model,
    java_cpu_model_key,
    look_up_facts,
    memory.parse_dimms,
    memory.parse_memory,
    memory.parse_module,
    names.normalize_company,
    scalars.parse_disclosure,
    scalars.parse_number,
    scalars.parse_orderable,
    software.normalize_jvm_vendor,
    software.parse_any_operating_system,
    software.parse_jvm,
    software.parse_operating_system,
    software.parse_storage,
)
PARSERS = {function.__name__: function for function in NAMED}
PARSERS |= {f"parse_rewritten_{name}": READERS[name] for name in ("l1", "l2", "l3")}
PARSERS["find_family"] = lambda name: find_family(cpu_model_key(name))


@pytest.mark.parametrize(("parser", "text", "expected"), ROWS)
def test_a_known_text_is_understood(parser, text, expected):
    result = PARSERS[parser](text)
    if not isinstance(expected, dict):
        assert result == expected
        return
    values = result if isinstance(result, dict) else vars(result)
    assert {name: values[name] for name in expected} == expected


KEYS = [(parser, text, key) for parser, text, key in ROWS if parser.endswith("cpu_model_key")]


@pytest.mark.parametrize(("parser", "text", "key"), KEYS)
def test_case_and_blanks_do_not_change_a_key_and_it_is_its_own_key(parser, text, key):
    assert PARSERS[parser](f"  {text.upper()} ") == PARSERS[parser](key) == key
