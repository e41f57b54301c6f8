"""Find entities and tasks by the names that people type; another model number is another entity."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from perfcast.inference.rules.names import Names
from perfcast.utils.errors import UserError

_JOINTS = re.compile(r"[\s_.,;:/-]+")
_DIGITS = re.compile(r"\d+")
_CANDIDATE_SIMILARITY = 0.8
"""Similarity from which a name is offered as a candidate."""
_MAX_CANDIDATES, _MAX_OF_GROUP = 6, 12
_TASK_SIMILARITY, _MAX_TASKS = 0.75, 8
"""Similarity from which a task is suggested, and tasks up to which a refusal lists them."""
_MAX_MATCHES = 10_000
"""Names whose matches are remembered: a batch repeats them."""


@dataclass(frozen=True)
class EntityMatch:
    """A known entity and whether its name was typed exactly; without an entity, the nearest candidates."""

    key: str | None
    exact: bool = False
    candidates: tuple[str, ...] = ()


class EntityNames:
    """The entities that are known by name, in the order they are offered (the most measured first).

    `names` has the rules that read them; `groups` are pairs of a family, series or vendor and an entity of it: a typed
    group offers its entities.
    """

    def __init__(self, names: Names, keys: Iterable[str], groups: Iterable[tuple[str, str]] = ()) -> None:
        self._names = names
        self.keys = tuple(dict.fromkeys(keys))
        self._known = frozenset(self.keys)
        self._squashed: dict[str, list[str]] = {}
        self._by_number: dict[str, list[str]] = {}
        for key in self.keys:
            self._squashed.setdefault(_squash(key), []).append(key)
            self._by_number.setdefault(names.model_number(key), []).append(key)
        self._groups: dict[str, set[str]] = {}
        for group, key in groups:
            self._groups.setdefault(group.lower(), set()).add(key)
        self._find_spelling = lru_cache(_MAX_MATCHES)(self._search_spelling)

    def find(self, text: str) -> EntityMatch:
        """Return the entity of a typed name.

        In this order: the normalized name; the same letters and digits with other joints; the entity
        with the same model number and with every typed word, if it is the only one or the others have its name and more
        words.
        Otherwise there is no entity, and the candidates are those of the typed family, series or vendor, those of the
        same number, those that complete the typed name, or those that look alike with their line. A name whose number
        differs in a letter or digit is never an entity.
        """
        key = self._names.read_key(text)
        return EntityMatch(key, exact=True) if key in self._known else self._find_spelling(key)

    def _search_spelling(self, key: str) -> EntityMatch:
        key = self._names.shorten_key(key)
        words, number = {word for word in _JOINTS.split(key) if word}, self._names.model_number(key)
        same = self._squashed.get(_squash(key), [])
        numbered = [known for known in self._by_number.get(number, []) if number and words <= _words(known)]
        for matches in (same, numbered):
            if matches:
                plain = min(matches, key=lambda known: len(_words(known)))
                others = tuple(known for known in matches if known != plain)
                if all(_words(plain) <= _words(known) for known in others):
                    return EntityMatch(plain, candidates=others[:_MAX_CANDIDATES])
                return EntityMatch(None, candidates=tuple(matches[:_MAX_CANDIDATES]))
        if members := self._find_members(words):
            return EntityMatch(None, candidates=tuple(members[:_MAX_OF_GROUP]))
        offered = [*self._by_number.get(number, []), *[known for known in self.keys if _begins(words, known)]]
        offered = offered if number else [known for known in self.keys if words <= _words(known)]
        if offered:
            return EntityMatch(None, candidates=tuple(dict.fromkeys(offered))[:_MAX_CANDIDATES])
        line = self._find_members({_DIGITS.sub("", word) for word in words} - {""})
        offered = [*self._near(key)[:_MAX_CANDIDATES], *(line if len(line) <= _MAX_OF_GROUP else [])]
        return EntityMatch(None, candidates=tuple(dict.fromkeys(offered))[:_MAX_OF_GROUP])

    def _find_members(self, words: set[str]) -> list[str]:
        """Return the entities of the groups with every typed word, those of a small group of this very name first."""
        named = {group: _words(group) for group in self._groups if words and words <= _words(group)}
        members = set().union(*(self._groups[group] for group in named))
        exact = set().union(*(self._groups[group] for group in named if named[group] == words))
        begin = exact if len(exact) <= _MAX_OF_GROUP else set()
        return sorted((known for known in self.keys if known in members), key=lambda known: known not in begin)

    def complete(self, text: str, count: int) -> list[str]:
        """Return names that a typed beginning may become: first those in which every typed word begins a word.

        Names that contain the typed text elsewhere come after them.
        """
        key = self._names.read_key(text)
        words, squashed = [word for word in _JOINTS.split(key) if word], _squash(key)
        if not squashed:
            return list(self.keys[:count])
        spaced = {known: f" {_JOINTS.sub(' ', known.lower())}" for known in self.keys}
        first = [known for known, text in spaced.items() if all(f" {word}" in text for word in words)]
        within = [known for form, keys in self._squashed.items() if squashed in form.lower() for known in keys]
        return list(dict.fromkeys([*first, *within]))[:count]

    def _near(self, key: str) -> list[str]:
        """Return the known names that look alike, or whose model number in the same line does."""
        line = {word for word in _words(key) if not _DIGITS.search(word)}
        forms = get_close_matches(_squash(key), self._squashed, _MAX_OF_GROUP, _CANDIDATE_SIMILARITY)
        numbers = get_close_matches(
            self._names.model_number(key), self._by_number, _MAX_OF_GROUP, _CANDIDATE_SIMILARITY
        )
        alike = [known for form in forms for known in self._squashed[form]]
        return alike + [known for number in numbers for known in self._by_number[number] if line <= _words(known)]


class TaskNames:
    """Tasks by their names in any case; `aliases` are other names, such as those of the publisher of the results."""

    def __init__(self, tasks: Sequence[str], aliases: Mapping[str, str]) -> None:
        self.tasks = list(tasks)
        known_aliases = {alias: task for alias, task in aliases.items() if task in self.tasks}
        self._known = {**{task: task for task in self.tasks}, **known_aliases}
        self._by_lower = {name.lower(): name for name in self._known}
        self._by_key = {_task_key(name): task for name, task in self._known.items()}

    def find(self, text: str) -> str | None:
        """Return the task of a name, None for an unknown name."""
        return self._by_key.get(_task_key(text))

    def get(self, text: str, label: str) -> str:
        """Return the task of a name; `label` is its origin in errors. Raises: UserError for an unknown name."""
        task = self.find(text)
        if task is None:
            # what differs in most of its letters is another task
            near = get_close_matches(text.lower(), self._by_lower, n=1, cutoff=_TASK_SIMILARITY)
            hint = f"did you mean {self._by_lower[near[0]]!r}?" if near else ""
            raise UserError(f"a task must be one of {list_tasks(self.tasks)}", f"{label} names {text[:60]!r}", hint)
        return task


def list_tasks(tasks: Sequence[str]) -> str:
    """Return the first tasks by name, and the number of the others."""
    more = f" and {len(tasks) - _MAX_TASKS} more" if len(tasks) > _MAX_TASKS else ""
    return f"{', '.join(tasks[:_MAX_TASKS])}{more}"


def _squash(key: str) -> str:
    return _JOINTS.sub("", key)


def _words(key: str) -> set[str]:
    return set(_JOINTS.split(key))


def _begins(words: set[str], known: str) -> bool:
    """Return whether every typed word begins a word of the known name, and one typed word has a digit."""
    known_words = _JOINTS.split(known)
    return any(_DIGITS.search(word) for word in words) and all(
        any(known_word.startswith(word) for known_word in known_words) for word in words
    )


def _task_key(text: str) -> str:
    return _JOINTS.sub("_", text.strip().lower())
