"""Progress of work that takes more than two seconds: a bar on a terminal, nothing in a pipe or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
"""Gets the step at work, the number of finished steps, and the number of all steps."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Yield a function that draws a bar on standard error; it draws nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden, refresh_per_second=2) as bar:
        task = bar.add_task("", total=None)

        def show(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield show
