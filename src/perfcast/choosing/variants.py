"""Machines that differ from one in what is varied and in what follows from that, and in nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pandas as pd

from perfcast.choosing.varying import Point, Varied, combinations
from perfcast.describing.fields import Cell
from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting import Champion, Described, describe
from perfcast.forecasting.completing import ASSUMED, GIVEN, IMPLIED, LOOKED_UP, MEASURED, MISSING, complete, refused
from perfcast.forecasting.describing import check_design
from perfcast.forecasting.knowledge import completion_of
from perfcast.forecasting.tasks import tasks_of
from perfcast.schema import Role, Tag

_FACTS = (LOOKED_UP, MEASURED)


@dataclass(frozen=True)
class Variant:
    """One combination: the values of what is varied, its lines by task, or the reason why it cannot be.

    `like`: the part that it would be but for what is varied, "" where it is what it is named.
    """

    points: tuple[Point, ...]
    lines: tuple[int, ...] = ()
    refused: str = ""
    like: str = ""


@dataclass(frozen=True)
class Variants:
    """All combinations, and the possible ones as machines: a line for every combination and task."""

    variants: tuple[Variant, ...]
    described: Described
    tasks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Base:
    """The machine before anything is varied, with a part: its cells and their origins by task, or why it cannot be."""

    part: str
    cells: tuple[Mapping[str, Any], ...] = ()
    origins: tuple[Mapping[str, str], ...] = ()
    refused: str = ""


class _Ties:
    """What a data set knows of its columns: which are facts of a part, and what follows from what."""

    def __init__(self, champion: Champion) -> None:
        measured = champion.knowledge.measured
        self.part, self.task = measured.column_of(Tag.ENTITY), measured.column_of(Tag.TASK)
        group = next(column.group for column in measured.columns if column.name == self.part)
        self.facts = set(measured.select(group=group))
        self.keys = set(measured.select(role=Role.KEY, group=group))
        self.module: ModuleType | None = completion_of(champion.dataset)
        self.capacities: Mapping[str, str] = self.module.CAPACITIES if self.module else {}

    def loose(self, varied: set[str], origins: Mapping[str, str]) -> set[str]:
        """Return the columns that do not stay when others are varied."""
        if self.module is None:
            return set()
        found = {name for column in varied for name in self.module.REPLACED.get(column, ())}
        adapted = {name for column in varied for name in self.module.ADAPTED.get(column, ())}
        for block in self.module.BLOCKS:
            # what is known of a part stays, however little: its other columns are no matter of what is usual
            if (varied - self.facts) & set(block.columns):
                adapted |= {name for name in block.columns if origins.get(name) == ASSUMED} - self.facts
        return found | {name for name in adapted if origins.get(name) != GIVEN}

    def beyond(self, cells: Mapping[str, Cell], base: _Base) -> set[str]:
        """Return the columns in which cells are not what the named part has."""
        known = {
            name: base.cells[0][name]
            for name, origin in base.origins[0].items()
            if origin in _FACTS and name in self.facts
        }
        other = {name for name, cell in cells.items() if name in known and cell != known[name]}
        return other | {
            name
            for name, most in self.capacities.items()
            if name in cells and most in known and cells[name] > known[most]
        }


def vary(
    entry: Entry, varied: Sequence[Varied], champion: Champion, tasks: Sequence[str] = (), *, assume: bool = True
) -> Variants:
    """Make every combination of a machine, for the tasks, else for its own, else for all.

    The machine is completed first, once for every part where parts are varied, and then held: what was given, looked
    up or assumed of it stays in all combinations, so that nothing changes but what is varied and what the completion
    module ties to it (`REPLACED`, `ADAPTED`, and what was assumed together with it). Where a varied value is not what
    the named part has, no combination of that part is that part: all are hypothetical ones with its facts for the rest,
    so that their forecasts can be compared. Raises: UserError when the machine itself cannot be used.
    """
    ties = _Ties(champion)
    columns = {column for one in varied for column in one.columns}
    if ties.task in columns:
        raise UserError(
            "a task is not varied", f"--vary names {ties.task}", "name it with --task, which may be repeated"
        )
    if ties.module:
        for point in (point for one in varied for point in one.points):
            check_design(point.cells, champion, ties.module.DESIGN, "--vary")
    parts: list[Point | None] = [point for one in varied if ties.part in one.columns for point in one.points]
    described = [_machine(entry, varied, one, champion=champion, ties=ties) for one in parts or [None]]
    machines = [machine for machine, _ in described]
    own = machines[0][ties.task].dropna().tolist()
    asked = tuple(tasks or own or tasks_of(champion))
    bases = [_base(machine, asked, champion, ties, assume=assume) for machine in machines]
    others = {
        base.part: beyond
        for base in bases
        if not base.refused
        and (
            beyond := {c for one in varied for point in one.points for c in ties.beyond(point.cells, base)}
            - {ties.part}
        )
    }
    rows: list[dict[str, Any]] = []
    variants = []
    for points in combinations(varied):
        base = bases[parts.index(next(point for point in points if ties.part in point.cells)) if parts else 0]
        cells = {name: cell for point in points for name, cell in point.cells.items() if name != ties.part}
        begin = len(rows)
        for own_cells, origins in zip(base.cells, base.origins, strict=True):
            rows.append(_held(own_cells, origins, columns, ties, anew=base.part in others) | cells)
        lines = tuple(range(begin, len(rows)))
        variants.append(Variant(points, lines, base.refused, base.part if base.part in others else ""))
    frame = champion.vocabulary.frame(rows, range(len(rows)))
    reasons = refused(frame, champion.knowledge) if rows else {}
    judged = tuple(_judged(one, reasons) for one in variants)
    said = list(dict.fromkeys(note for _, notes in described for note in notes))
    return Variants(
        judged,
        Described(frame.loc[[line for one in judged for line in one.lines]], {}),
        asked,
        (*said, *(_hypothetical(part, beyond, varied) for part, beyond in others.items())),
    )


def _machine(
    entry: Entry, varied: Sequence[Varied], part: Point | None, *, champion: Champion, ties: _Ties
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Describe the machine without what is varied, with one of the varied parts."""
    line, where, said = entry
    vocabulary = champion.vocabulary
    columns = {column for one in varied for column in one.columns}
    meant = [vocabulary.meaning(one.name, "--vary") for one in varied]
    kept: dict[str, object] = {}
    for word, value in said.items():
        cells = vocabulary.cells({word: value}, where)
        if vocabulary.meaning(word, where) not in meant and not (cells and set(cells) <= columns):
            kept[word] = value
    if part is not None:
        kept[ties.part] = part.text
    others = {one.name: one.points[0].text for one in varied if ties.part not in one.columns}
    try:
        described = describe([(line, where, kept)], champion)
    except UserError:
        # a new part is described by what is varied, too: what is assumed is then assumed of the first combination
        described = describe([(line, where, kept | others)], champion)
    frame = described.frame
    if ties.module:
        whole = vocabulary.frame([vocabulary.cells(said, where)], [line])
        each = ties.module.per_processor(whole)
        changed = [name for name in each if name not in columns and not each[name].equals(whole[name])]
        frame = frame.assign(**{name: each[name].to_numpy() for name in changed})
    return frame, described.notes.get(line, ())


def _base(machine: pd.DataFrame, tasks: Sequence[str], champion: Champion, ties: _Ties, *, assume: bool) -> _Base:
    found = machine[ties.part].iloc[0]
    part = "" if pd.isna(found) else str(found)
    reasons = refused(machine, champion.knowledge)
    if reasons:
        return _Base(part, refused=next(iter(reasons.values())))
    asked = machine.iloc[[0] * len(tasks)].reset_index(drop=True).assign(**{ties.task: list(tasks)})
    completed = complete(asked, champion.knowledge, champion.donors if assume else None)
    cells, origins = ([dict(row) for _, row in one.iterrows()] for one in (completed.frame, completed.origins))
    return _Base(part, tuple(cells), tuple(origins))


def _held(
    cells: Mapping[str, Any], origins: Mapping[str, str], varied: set[str], ties: _Ties, *, anew: bool
) -> dict[str, Any]:
    """Return the cells that stay; `anew`: but for what makes the machine one of its part."""
    gone = varied - {ties.part} | ties.loose(varied, origins)
    if anew:
        gone |= ties.keys | {most for name, most in ties.capacities.items() if name in varied}
    return {name: cell for name, cell in cells.items() if name not in gone and origins[name] not in (IMPLIED, MISSING)}


def _judged(one: Variant, reasons: Mapping[int, str]) -> Variant:
    reason = one.refused or next((reasons[line] for line in one.lines if line in reasons), "")
    return replace(one, lines=(), refused=reason) if reason else one


def _hypothetical(part: str, beyond: set[str], varied: Sequence[Varied]) -> str:
    names = [one.name for one in varied if one.columns & beyond]
    return (
        f"{part} has its own {' and '.join(names)}: all machines here with it have a hypothetical part like it "
        "instead, with its other facts"
    )
