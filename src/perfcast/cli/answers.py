"""Form and file of the answers of commands that predict."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


NONE_ANSWERED, PARTLY_ANSWERED = 2, 3
"""Exit codes of a batch of which no machine, or not every one, could be used."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that spreadsheets compute."""


def add_output(parser: argparse.ArgumentParser, files: str) -> None:
    """Declare the form of the answer, and its file."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"write to this file, by its ending: {files}")


def check_out(options: argparse.Namespace, *endings: str) -> None:
    """Refuse an --out with another ending than the given ones, if any, and an input."""
    if options.out is None:
        return
    if endings and options.out.suffix not in endings:
        allowed = " or ".join([*filter(None, [", ".join(endings[:-1])]), endings[-1]])
        raise UserError(f"--out must end in {allowed}", f"it is {options.out.name!r}")
    if not options.out.is_file():
        return
    for name, value in vars(options).items():
        if name != "out" and isinstance(value, Path) and value.exists() and value.samefile(options.out):
            raise UserError("--out must not be an input", f"it is {str(value)!r}", "name another file")


@contextmanager
def replacing(out: Path) -> Iterator[None]:
    """Say which file the block has replaced, once it has."""
    existed = out.is_file()
    yield
    if existed:
        print(f"--out {out} existed and was replaced", file=sys.stderr)


def write_answer(options: argparse.Namespace, answer: Any, format_text: Callable[[Any, int | None], str]) -> None:
    """Write the answer to --out as JSON or CSV, and print it as JSON, CSV or text; without --out text is the default.

    Args: `answer` has `to_dict()` and `to_frame()`; `format_text` takes it and the width of the terminal.
    """
    from perfcast.utils.io import write_text
    from perfcast.utils.terminal_tables import terminal_width

    written = options.out is not None and options.out.suffix != ".svg"
    if written:
        is_json = options.out.suffix == ".json"
        with replacing(options.out):
            write_text(options.out, _as_json(answer.to_dict()) if is_json else _as_csv(answer.to_frame()))
    if options.json:
        print(_as_json(answer.to_dict()), end="")
    elif options.csv:
        print(_as_csv(answer.to_frame()), end="")
    elif not written:
        print(format_text(answer, terminal_width()))


def _as_json(tree: dict[str, Any]) -> str:
    """Return indented JSON."""
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _as_csv(frame: pd.DataFrame) -> str:
    """Return CSV with six significant digits; a text that a spreadsheet would compute begins with an apostrophe."""

    def quote(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell

    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).columns
    frame = frame.assign(**{name: frame[name].map(quote) for name in texts})
    return str(frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def count_words(count: int, noun: str) -> str:
    """Return a number with its noun: 1 estimate, 2 estimates."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def report(counted: str, champion: str, preset: str, level: float) -> None:
    """Print the line under an answer on standard error: the count, the champion and the level."""
    print(
        f"{counted} by {champion} ({preset} preset), {100 * level:g} % intervals; estimates are not official results",
        file=sys.stderr,
    )


def report_refused(refused: int, total: int) -> int:
    """Print the number of refused machines on standard error, and return the exit code of the command."""
    if refused:
        counted = f"{refused} of {count_words(total, 'machine')} refused"
        print(f"{counted}: {'its' if refused == 1 else 'their'} status and message tell why", file=sys.stderr)
        return PARTLY_ANSWERED if refused < total else NONE_ANSWERED
    return 0
