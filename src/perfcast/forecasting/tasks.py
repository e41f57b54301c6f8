"""Tasks by the names that people know them by: the data set's own, or those of whoever publishes the results."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from perfcast.errors import UserError
from perfcast.forecasting.knowledge import completion_of
from perfcast.schema import Tag

if TYPE_CHECKING:
    from perfcast.forecasting.champion import Champion

_JOINTS = re.compile(r"[\s_-]+")


def tasks_of(champion: Champion) -> list[str]:
    """Return the tasks that a champion forecasts, in the order it answers them."""
    measured = champion.knowledge.measured
    return sorted(measured.frame[measured.column_of(Tag.TASK)].dropna().astype(str).unique())


def targets_of(champion: Champion, task: str) -> list[str]:
    """Return the targets that a task was measured in."""
    measured = champion.knowledge.measured
    rows = measured.frame[measured.frame[measured.column_of(Tag.TASK)].astype(str) == task]
    return [name for name in champion.predictor.targets_ if rows[name].notna().any()]


class TaskNames:
    """Finds tasks by their names in any case, `TASK_NAMES` of the completion module included."""

    def __init__(self, champion: Champion) -> None:
        self.tasks = tasks_of(champion)
        module = completion_of(champion.dataset)
        others = {alias: task for alias, task in (module.TASK_NAMES if module else {}).items() if task in self.tasks}
        self._known = {**{task: task for task in self.tasks}, **others}
        self._tasks = {_key(name): task for name, task in self._known.items()}

    def find(self, text: str) -> str | None:
        """Return the task of a name, None where it is none."""
        return self._tasks.get(_key(text))

    def get(self, text: str, where: str) -> str:
        """Return the task of a name; `where` says in errors who names it. Raises: UserError when it is none."""
        task = self.find(text)
        if task is None:
            near = get_close_matches(text, self._known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            raise UserError(f"a task must be one of {', '.join(self.tasks)}", f"{where} names {text[:60]!r}", hint)
        return task


def _key(text: str) -> str:
    return _JOINTS.sub("_", text.strip().lower())
