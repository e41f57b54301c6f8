"""The walk of a command: functions of perfcast that it enters, in the order of their first call.

    python benchmarks/walk.py predict --processor 'EPYC 9654' --chips 2

A stay is a run of functions of one module in that order. A climb is a stay whose package lies above that of the stay
before it, by the layers of pyproject.toml; a module of a domain counts by the folder that it is in.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tomllib
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType

import perfcast

PACKAGE = Path(perfcast.__file__).parent


def read_layers(project: Path) -> dict[str, int]:
    """Return package or module -> its layer, 0 for the highest."""
    contracts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    return {name.strip(): level for level, names in enumerate(layers) for name in names.split("|")}


def record(arguments: list[str]) -> list[tuple[str, str]]:
    """Run a command and return (module, function), in the order of first calls, without those of imports."""
    from perfcast.cli.main import main

    walk: dict[tuple[str, str], None] = {}
    names: dict[str, str | None] = {}

    def see(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name[0] != "<":
            if code.co_filename not in names:
                path = Path(code.co_filename)
                names[code.co_filename] = str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None
            if module := names[code.co_filename]:
                walk.setdefault((module, code.co_qualname))

    with contextlib.redirect_stdout(io.StringIO()):
        main(arguments)  # imports and caches
        sys.setprofile(see)
        try:
            main(arguments)
        finally:
            sys.setprofile(None)
    return list(walk)


def count(walk: list[tuple[str, str]], layers: dict[str, int]) -> dict[str, int]:
    """Return the functions, modules, stays and climbs of a walk."""
    stays = [module for module, _ in groupby(module for module, _ in walk)]
    levels = [layers.get(part) for part in map(_package, stays)]
    climbs = sum(after < before for before, after in pairwise(level for level in levels if level is not None))
    return {"functions": len(walk), "modules": len(set(stays)), "stays": len(stays), "climbs": climbs}


def _package(module: str) -> str:
    parts = Path(module).parts
    return Path(parts[2 if parts[0] == "domains" and len(parts) > 3 else 0]).stem


if __name__ == "__main__":
    steps = record(sys.argv[1:])
    for module, names in groupby(steps, key=lambda step: step[0]):
        print(f"{module}: {', '.join(name for _, name in names)}")
    print(count(steps, read_layers(PACKAGE.parents[1])))
