"""Find a processor however its name was typed, and never guess between two."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from perfcast.processors.names import part_key

_JOINTS = re.compile(r"[\s_-]+")
_DIGITS = re.compile(r"\d+")
_LIKE = 0.8
"""Similarity from which a name is offered as a candidate."""
_SURE = 0.85
"""Similarity from which the only candidate with the very same digits is taken for a mistyped name."""
_OFFERED = 6


@dataclass(frozen=True)
class Found:
    """A known part, and whether its name was typed as it is known; or, without a part, what comes nearest."""

    key: str | None
    exact: bool = False
    candidates: tuple[str, ...] = ()


@dataclass
class PartNames:
    """The parts that are known by name, in the order they are offered (the most measured first)."""

    keys: tuple[str, ...]
    _squashed: dict[str, list[str]] = field(init=False, repr=False)

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        self._known = frozenset(self.keys)
        self._squashed = {}
        for key in self.keys:
            self._squashed.setdefault(_squash(key), []).append(key)

    def find(self, text: str) -> Found:
        """Return the part that is meant.

        In this order: the normalised name; the same letters with other joints (`EPYC9654`, `Xeon Gold-6430`); the only
        part whose name has every word typed (`9654`); the only mistyped name, where all digits are right. Otherwise
        there is no part, and the candidates say what could be meant.
        """
        key = part_key(text)
        if key in self._known:
            return Found(key, exact=True)
        words = set(_JOINTS.split(key))
        same = self._squashed.get(_squash(key), [])
        for meant in (same, [known for known in self.keys if words <= set(_JOINTS.split(known))]):
            if meant:
                return Found(meant[0]) if len(meant) == 1 else Found(None, candidates=tuple(meant[:_OFFERED]))
        begun = [known for known in self.keys if _begins(words, known)]
        near = self._near(key)
        if begun:
            return Found(None, candidates=tuple(begun[:_OFFERED]))
        right = [known for likeness, known in near if likeness >= _SURE and _DIGITS.findall(known) == _digits(key)]
        if len(right) == 1 and _digits(key):
            return Found(right[0])
        return Found(None, candidates=tuple(known for _, known in near[:_OFFERED]))

    def begun(self, text: str, count: int) -> list[str]:
        """Return names a person may be about to type: those in which every word typed begins a word, in their order.

        Names that merely hold what was typed come after them.
        """
        key = part_key(text) or text.strip().lower()
        words, squashed = [word for word in _JOINTS.split(key) if word], _squash(key)
        if not squashed:
            return list(self.keys[:count])
        first = [known for known in self.keys if all(f" {word}" in _spaced(known) for word in words)]
        within = [known for own, keys in self._squashed.items() if squashed in own for known in keys]
        return list(dict.fromkeys([*first, *within]))[:count]

    def _near(self, key: str) -> list[tuple[float, str]]:
        """Return the known names that look alike, the most alike first."""
        squashed = _squash(key)
        matcher = SequenceMatcher(autojunk=False, b=squashed)
        found = []
        for own, keys in self._squashed.items():
            matcher.set_seq1(own)
            if matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE and matcher.ratio() >= _LIKE:
                found += [(matcher.ratio(), known) for known in keys]
        return sorted(found, key=lambda pair: (-pair[0], self.keys.index(pair[1])))


def _squash(key: str) -> str:
    return _JOINTS.sub("", key)


def _spaced(key: str) -> str:
    return f" {_JOINTS.sub(' ', key)}"


def _digits(key: str) -> list[str]:
    return _DIGITS.findall(key)


def _begins(words: set[str], known: str) -> bool:
    """Tell whether every word typed begins a word of the known name, one with a digit in it among them."""
    own = _JOINTS.split(known)
    return any(_DIGITS.search(word) for word in words) and all(
        any(one.startswith(word) for one in own) for word in words
    )
