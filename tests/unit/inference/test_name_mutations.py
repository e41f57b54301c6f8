"""A name that differs in one letter or digit of the model number is never another CPU model."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from champion_project import KNOWN, predict

from perfcast.domains.servers.processors.catalog import read_project_catalog
from perfcast.domains.servers.server_rules import SERVERS
from perfcast.inference.name_lookup import EntityNames

NAMES = sorted(read_project_catalog().facts.index)
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
    names = EntityNames(SERVERS, keys)
    wrong = []
    for name in keys:
        line, number = split_name(name)
        for mutated in set(mutate(number)):
            key = names.find(line + mutated).key
            if key is not None and _JOINT.sub("", split_name(key)[1]) != _JOINT.sub("", mutated):
                wrong.append((line + mutated, key))
    return wrong


def test_no_catalog_name_with_a_changed_character_is_another_cpu_model():
    assert len(NAMES) > 100
    assert find_misreadings(NAMES) == []


@pytest.mark.parametrize("name", ["Xeon Gold 6149", "Xeon Gold 6148X"])
def test_predictions_of_changed_names_are_not_those_of_the_known_model(name):
    (changed,) = predict({**KNOWN, "processor": name})
    assert "6148," not in f"{changed.machine},"
