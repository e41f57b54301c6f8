"""Commands that ask a champion: options of the champion, of machines and of predictions, and the form of answers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from perfcast.cli.arguments import add_shared, share
from perfcast.domain import domains
from perfcast.utils.errors import UserError

if TYPE_CHECKING:
    from perfcast.inference import Champion, MachineEntry
    from perfcast.inference.options import PredictOptions
    from perfcast.inference.suites import Measured, Suites

_Found = TypeVar("_Found")
NONE_ANSWERED, PARTLY_ANSWERED = 2, 3
"""Exit codes of a batch of which no machine, or not every one, could be used."""
# first the domain whose configuration is the project's own: what most users ask about
_DOMAINS = sorted(domains(), key=lambda domain: domain.conf.is_dir())
FLAGS = {title: flags for domain in _DOMAINS for title, flags in domain.flags.items()}
"""Options of the most common fields by kind of machine, with synonyms, as files and HTTP requests name them.

They are declared before a champion is read: those of another dataset are unknown names to it.
"""


def add_champion(parser: argparse.ArgumentParser, *, facts: bool = True) -> None:
    """Declare the options of the champion; `facts` is whether a command reads a table of facts beside it."""
    parser.add_argument("--dataset", default="spec_cpu2017", metavar="NAME", help="dataset of the champion")
    add_shared(parser, "--results")
    parser.add_argument(
        "--champion",
        type=Path,
        metavar="PATH",
        help="its folder or exported file (default: <results>/champion/<dataset>)",
    )
    parser.add_argument(
        "--suite",
        metavar="END",
        help="of the champion and those beside it that rest on its estimates, the one whose dataset ends so, as 2026",
    )
    if facts:
        add_shared(parser, "--facts")


def add_power(parser: argparse.ArgumentParser) -> None:
    """Declare the champion of power."""
    meaning = "champion of the watts of machines at idle and at full load: its folder or exported file"
    parser.add_argument("--power", type=Path, metavar="PATH", help=meaning)


BOTH = "both"
"""Value of --suite for every champion."""


def find_champions(options: argparse.Namespace) -> dict[str, Path]:
    """Return the champion of the options, and those beside it that rest on its estimates, by dataset, as --suite says.

    Raises: UserError when no dataset ends so.
    """
    from perfcast.utils.io import read_object

    folder = champion_path(options)
    folders = {options.dataset: folder}
    for about in sorted(folder.parent.glob("*/about.json")) if options.suite and folder.is_dir() else ():
        bridge = read_object(about).get("bridge") or {"dataset": "", "without": None}
        if bridge["dataset"] == options.dataset and bridge["without"] is None:
            folders[about.parent.name] = about.parent
    return _choose_suites(options, folders)


def champion_path(options: argparse.Namespace) -> Path:
    """Return the folder or file of the champion of the options: without one and without a run, that of the package."""
    from perfcast.utils.packaged_project import default_champion

    given: Path | None = options.champion
    return given or default_champion(options.results, options.dataset)


def _choose_suites(options: argparse.Namespace, champions: dict[str, _Found]) -> dict[str, _Found]:
    """Return those whose dataset --suite names. Raises: UserError when there is none."""
    wanted = [name for name in champions if options.suite in (None, BOTH) or name.endswith(options.suite)]
    if not wanted:
        requirement = f"--suite must be {BOTH} or the end of a dataset"
        raise UserError(requirement, f"it is {options.suite!r}", " or ".join(champions))
    return {name: champions[name] for name in wanted}


def read_champion(options: argparse.Namespace) -> Champion:
    """Read the champion of the options; of a pair, the first."""
    return _read_champions(options, 1)[0]


def read_suites(options: argparse.Namespace) -> Suites:
    """Read the champion of the options, with the one that rests on it where --suite asks for both."""
    from perfcast.inference.suites import Suites

    return Suites(*_read_champions(options, 2))


def _read_champions(options: argparse.Namespace, most: int) -> list[Champion]:
    """Return at most so many champions: those of `find_champions`, or those that one file or folder holds."""
    from perfcast.inference.champion_archive import has_base
    from perfcast.inference.champion_files import load_champion

    power = getattr(options, "power", None)
    given = None if options.champion is None else load_champion(options.champion, None, power)
    base = None if given is None or given.base is None else given.base.champion
    if given is not None and base is not None and base.dataset == options.dataset:
        base.power = given.power
        chosen = list(_choose_suites(options, {base.dataset: base, given.dataset: given}).values())
        champions = chosen[: most if options.suite else 1]
    else:
        known = {} if given is None else {given.dataset: given}
        paths = list(find_champions(options).items())[:most]
        name, path = paths[-1]
        last = known.get(name) or load_champion(path, name, power)
        champions = [last]
        for name, earlier in paths[:-1]:
            if last.base is not None and has_base(path, earlier):
                # what the later suite has a copy of is read once
                first = last.base.champion
                first.power = last.power
            else:
                first = known.get(name) or load_champion(earlier, name, power)
            champions.insert(0, first)
    return [_add_facts(options, champion.require_described()) for champion in champions]


def _add_facts(options: argparse.Namespace, champion: Champion) -> Champion:
    """Return a champion with the facts of the user's table, which is named on standard error."""
    if options.facts is None:
        return champion
    champion = cast("Champion", champion.rules.typical_values.add_user_facts(champion, options.facts))
    if champion.power is not None:
        champion.power = champion.power.rules.typical_values.add_user_facts(champion.power, options.facts)
    count = len(champion.reference_data.user_entities)
    print(f"{options.facts}: {count} {champion.rules.names.entity_name}{'s'[: count != 1]} of yours", file=sys.stderr)
    return champion


def add_machines(parser: argparse.ArgumentParser) -> None:
    """Declare the ways to describe machines: a file, flags, or the hardware of this machine."""
    parser.add_argument("machines", type=Path, nargs="?", help="a .csv, .json or .yaml file of one machine or more")
    add_machine_flags(parser)
    parser.add_argument("--this-machine", action="store_true", help="describe this machine, as far as it can be read")


def add_machine_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the fields of machines."""
    for title, flags in FLAGS.items():
        group = parser.add_argument_group(title)
        for (name, *synonyms), meaning in flags.items():
            options = (f"--{name}", *(f"--{synonym}" for synonym in synonyms))
            group.add_argument(*options, dest=name, metavar="TEXT", help=meaning)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any other field, such as tdp=400"
    )


def read_machine_flags(options: argparse.Namespace) -> dict[str, object]:
    """Return the fields that were given as flags."""
    from perfcast.inference.machine_files import read_assignments

    names = [name for flags in FLAGS.values() for name, *_ in flags]
    flags: dict[str, object] = {name: value for name in names if (value := getattr(options, name)) is not None}
    return read_assignments(options.set, flags)


def read_entries(options: argparse.Namespace, champion: Champion, *, allow_empty: bool = False) -> list[MachineEntry]:
    """Return the machines of the options; flags describe one machine, or add to every machine of a file.

    `allow_empty`: no option at all is one machine without any field.
    Raises: UserError when no machine is described, or a file and a flag give the same field.
    """
    from perfcast.inference.machine_files import MachineEntry, add_fields, make_entry

    flags = champion.rules.names.read_files(read_machine_flags(options))
    if options.machines is not None:
        return add_fields(read_file(options.machines, champion), flags)
    if options.this_machine:
        read = champion.rules.names.read_this_machine(champion.fields.cells(flags, "the command"))
        if read is None:
            fact, example = "this champion is of another one", champion.rules.presentation.example
            raise UserError("--this-machine must be of a dataset of servers", fact, example)
        values, text = read
        print(text, file=sys.stderr, flush=True)
        return [MachineEntry(1, "this machine", {**values, **flags})]
    if flags or allow_empty:
        return [make_entry(1, "the machine", flags)]
    fact = "no file, no flag and no --this-machine was given"
    raise UserError("a machine must be described", fact, f"try {champion.rules.presentation.example}")


def read_short_machines(texts: Sequence[str], champion: Champion) -> list[MachineEntry]:
    """Return the machines of short texts and of files, numbered from 1."""
    from perfcast.inference.machine_files import ENDINGS, SPREADSHEETS, read_short_machine

    machines: list[MachineEntry] = []
    for text in texts:
        if text.lower().endswith((*ENDINGS, *SPREADSHEETS)):
            machines += read_file(text, champion)
        else:
            entry = read_short_machine(text, champion.named_field, champion.rules.presentation.short_example)
            machines += champion.read_files([entry])
    return [entry._replace(line=number) for number, entry in enumerate(machines, start=1)]


def read_file(path: Path | str, champion: Champion) -> list[MachineEntry]:
    """Return the machines of a file; its unknown columns are named on standard error."""
    entries = champion.read_entries(path)
    if note := champion.describe_carried(entries):
        print(f"{path}: {note}", file=sys.stderr)
    return entries


def add_prediction(parser: argparse.ArgumentParser) -> None:
    """Declare how predictions are made."""
    parser.add_argument("--level", type=share, metavar="SHARE", help="level of the intervals, 0 to 1 (default: 0.9)")
    parser.add_argument(
        "--measured",
        type=Path,
        metavar="FILE",
        help="scores measured of these machines or of similar ones: machines with a task and a score",
    )
    parser.add_argument(
        "--when",
        metavar="YYYY-MM",
        help="month of the measurement (default: this month, at most a year after the newest result)",
    )
    add_shared(parser, "--no-assume")


def read_options(options: argparse.Namespace) -> PredictOptions:
    """Return the prediction options, without neighbors and explanations. Raises: UserError for an impossible month."""
    from perfcast.inference.options import make_options

    chosen = {"level": options.level, "when": options.when, "assume": not options.no_assume}
    return make_options(**chosen, neighbors=0, explain=False, prefix="--")


def read_tasks(options: argparse.Namespace, suites: Suites) -> tuple[str, ...]:
    """Return the tasks of the options without repetition; none means all. Raises: UserError for an unknown name."""
    typed = [name.strip() for text in options.task for name in text.split(",")]
    if typed and not all(typed):
        raise UserError("--task must be names of tasks", f"it is {','.join(options.task)[:60]!r}", "write NAME,NAME")
    return tuple(dict.fromkeys(suites.task_names.get(name, "--task") for name in typed))


def read_user_measurements(options: argparse.Namespace, entries: Sequence[MachineEntry], suites: Suites) -> Measured:
    """Read the file of --measured, nothing without one; fields that it leaves out are those of the only machine.

    Scores that look like mistakes are named on standard error: brief answers, tables and files have no notes.
    """
    if options.measured is None:
        return ()
    from perfcast.inference.machine_files import read_machines
    from perfcast.inference.suites import read_measured

    machine = dict(entries[0].values) if len(entries) == 1 else None
    scores = suites.first.read_files(read_machines(options.measured))
    measured = read_measured(scores, suites, machine)
    for note in (note for each in measured if each for note in each.notes):
        print(f"--measured: {note}", file=sys.stderr)
    return measured


def add_output(parser: argparse.ArgumentParser, files: str) -> None:
    """Declare the form of the answer, and its file."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"write to this file, by its ending: {files}")


def add_answer(parser: argparse.ArgumentParser) -> None:
    """Declare the champion, how predictions are made, and the form of an answer that is a CSV or JSON file."""
    add_champion(parser)
    add_prediction(parser)
    add_output(parser, ".csv or .json")


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
    from perfcast.inference.prediction import as_csv
    from perfcast.utils.io import write_text
    from perfcast.utils.terminal_tables import terminal_width

    if options.out is not None:
        is_json = options.out.suffix == ".json"
        with replacing(options.out):
            write_text(options.out, _as_json(answer.to_dict()) if is_json else as_csv(answer.to_frame()))
    if options.json:
        print(_as_json(answer.to_dict()), end="")
    elif options.csv:
        print(as_csv(answer.to_frame()), end="")
    elif options.out is None:
        print(format_text(answer, terminal_width()))


def finish(
    options: argparse.Namespace,
    answer: Any,
    format_text: Callable[[Any, int | None], str],
    counted: str,
    *,
    level: float,
    total: int = 0,
) -> int:
    """Write the answer and, on standard error, who made it and how many of `total` it refused; return the exit code."""
    from perfcast.utils.packaged_project import CHAMPIONS

    write_answer(options, answer, format_text)
    learned = f", results to {answer.results_until}" if answer.results_until else ""
    learned += f", for {answer.month}" if answer.month else ""
    source = " of the package" if champion_path(options).is_relative_to(CHAMPIONS) else ""
    by = f"{counted} by {answer.champion}{source} ({answer.preset} preset{learned}), {100 * level:g} % intervals"
    print(f"{by}; estimates are not official results", file=sys.stderr)
    if refused := len(getattr(answer, "refused", ())):
        counted = f"{refused} of {count_words(total, 'machine')} refused"
        print(f"{counted}: {'its' if refused == 1 else 'their'} status and message tell why", file=sys.stderr)
        return PARTLY_ANSWERED if refused < total else NONE_ANSWERED
    return 0


def _as_json(tree: dict[str, Any]) -> str:
    """Return indented JSON."""
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def count_words(count: int, noun: str) -> str:
    """Return a number with its noun: 1 estimate, 2 estimates."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
