"""Find CPU models and tasks by the names that people type, without a guess between two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

from perfcast.data.processors.cpu_names import cpu_model_key
from perfcast.utils.errors import UserError

_JOINTS = re.compile(r"[\s_-]+")
_DIGITS = re.compile(r"\d+")
_CANDIDATE_SIMILARITY = 0.8
"""Similarity from which a name is offered as a candidate."""
_MATCH_SIMILARITY = 0.85
"""Similarity from which the only candidate with the same digits counts as the mistyped name."""
_MAX_CANDIDATES = 6


@dataclass(frozen=True)
class CpuMatch:
    """A known CPU model and whether its name was typed exactly; without a model, the nearest candidates."""

    key: str | None
    exact: bool = False
    candidates: tuple[str, ...] = ()


class CpuNames:
    """The CPU models that are known by name, in the order they are offered (the most measured first)."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        self._known = frozenset(self.keys)
        self._squashed: dict[str, list[str]] = {}
        for key in self.keys:
            self._squashed.setdefault(_squash(key), []).append(key)

    def find(self, text: str) -> CpuMatch:
        """Return the CPU model of a typed name.

        In this order: the normalized name; the same letters with other joints (`EPYC9654`, `Xeon Gold-6430`); the only
        model whose name has every typed word (`9654`); the only mistyped name, where all digits are right. Otherwise
        there is no model, and the candidates are the possible ones.
        """
        key = cpu_model_key(text)
        if key in self._known:
            return CpuMatch(key, exact=True)
        words = set(_JOINTS.split(key))
        same = self._squashed.get(_squash(key), [])
        for matches in (same, [known for known in self.keys if words <= set(_JOINTS.split(known))]):
            if matches:
                only = matches[0] if len(matches) == 1 else None
                return CpuMatch(only, candidates=() if only else tuple(matches[:_MAX_CANDIDATES]))
        completions = [known for known in self.keys if _begins(words, known)]
        if completions:
            return CpuMatch(None, candidates=tuple(completions[:_MAX_CANDIDATES]))
        near, digits = self._near(key), _DIGITS.findall(key)
        matches = [known for score, known in near if score >= _MATCH_SIMILARITY and _DIGITS.findall(known) == digits]
        if len(matches) == 1 and digits:
            return CpuMatch(matches[0])
        return CpuMatch(None, candidates=tuple(known for _, known in near[:_MAX_CANDIDATES]))

    def complete(self, text: str, count: int) -> list[str]:
        """Return names that a typed beginning may become: first those in which every typed word begins a word.

        Names that contain the typed text elsewhere come after them.
        """
        key = cpu_model_key(text) or text.strip().lower()
        words, squashed = [word for word in _JOINTS.split(key) if word], _squash(key)
        if not squashed:
            return list(self.keys[:count])
        first = [known for known in self.keys if all(f" {word}" in f" {_JOINTS.sub(' ', known)}" for word in words)]
        within = [known for form, keys in self._squashed.items() if squashed in form for known in keys]
        return list(dict.fromkeys([*first, *within]))[:count]

    def _near(self, key: str) -> list[tuple[float, str]]:
        """Return the known names that look alike and their similarity, the most similar first."""
        matcher = SequenceMatcher(autojunk=False, b=_squash(key))
        limit = _CANDIDATE_SIMILARITY
        near = []
        for form, keys in self._squashed.items():
            matcher.set_seq1(form)
            if matcher.real_quick_ratio() >= limit and matcher.quick_ratio() >= limit and matcher.ratio() >= limit:
                near += [(matcher.ratio(), known) for known in keys]
        return sorted(near, key=lambda pair: (-pair[0], self.keys.index(pair[1])))


class TaskNames:
    """Tasks by their names in any case; `aliases` are other names, such as those of the publisher of the results."""

    def __init__(self, tasks: Sequence[str], aliases: Mapping[str, str]) -> None:
        self.tasks = list(tasks)
        known_aliases = {alias: task for alias, task in aliases.items() if task in self.tasks}
        self._known = {**{task: task for task in self.tasks}, **known_aliases}
        self._by_key = {_task_key(name): task for name, task in self._known.items()}

    def find(self, text: str) -> str | None:
        """Return the task of a name, None for an unknown name."""
        return self._by_key.get(_task_key(text))

    def get(self, text: str, label: str) -> str:
        """Return the task of a name; `label` is its origin in errors. Raises: UserError for an unknown name."""
        task = self.find(text)
        if task is None:
            near = get_close_matches(text, self._known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise UserError(f"a task must be one of {', '.join(self.tasks)}", f"{label} names {text[:60]!r}", hint)
        return task


def _squash(key: str) -> str:
    return _JOINTS.sub("", key)


def _begins(words: set[str], known: str) -> bool:
    """Return whether every typed word begins a word of the known name, and one typed word has a digit."""
    known_words = _JOINTS.split(known)
    return any(_DIGITS.search(word) for word in words) and all(
        any(known_word.startswith(word) for known_word in known_words) for word in words
    )


def _task_key(text: str) -> str:
    return _JOINTS.sub("_", text.strip().lower())
