"""Mutation scores: the share of small faults, planted one at a time in a module, that the tests near it notice.

    python benchmarks/mutants.py [AREA ...] [--count 150] [--out results/reliability/mutants.csv]

Faults are planted in a copy of the project: those of Cosmic Ray, without replaced operators that any call notices,
and calls and raises that are left out. A mutant that differs in annotations alone is none. Every mutant runs in a fork
that has imported the libraries, with the tests that call the changed function, fast ones first; one that takes too
long counts as killed. Survivors are printed as differences.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import importlib
import os
import pickle
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pandas as pd
from called_functions import CalledFunctions, ChosenTests, enclosing_function, with_recorder

PROJECT = Path(__file__).parents[1]
PRELOADED = (
    *("hydra", "hypothesis", "numpy", "omegaconf", "pandas", "pyarrow.parquet", "pydantic", "pytest", "ruamel.yaml"),
    *("scipy.optimize", "scipy.sparse.csgraph", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model", "yaml"),
)
BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul", "BitAnd_BitOr", "BitOr_BitAnd")
PASSED, NO_TESTS = 0, 5
"""Exit codes of pytest."""
SECONDS = 120
"""Processor time of one mutant."""


@dataclass(frozen=True)
class Area:
    """Modules, as patterns below src/perfcast, and the arguments of pytest that select the tests near them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


_CONTRACT = ("tests/contract/test_splits.py", "-k", "not _percent and not _years and not draw")
AREAS = {
    "splits": Area(("splits/*.py",), ("tests/unit/splits", *_CONTRACT)),
    "leakage checks": Area(("evaluation/leakage/*.py",), ("tests/unit/evaluation/leakage",)),
    "files": Area(("utils/io.py",), ("tests/unit/test_io.py",)),
    "accounting": Area(("data/standardized.py",), ("tests/unit/data/test_quality.py",)),
    "intervals": Area(
        tuple(f"uncertainty/{name}.py" for name in ("conformal", "mixture")),
        ("tests/unit/uncertainty",),
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One planted fault."""

    path: Path
    source: str
    changed: str

    def difference(self) -> str:
        """Return the changed lines."""
        lines = difflib.unified_diff(self.source.splitlines(), self.changed.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in list(lines)[2:])


def find_mutants(path: Path) -> list[Mutant]:
    """Return every mutant of a module that changes what it does."""
    from cosmic_ray.ast import get_ast
    from cosmic_ray.mutating import MutationVisitor
    from cosmic_ray.plugins import get_operator, operator_names

    source = path.read_text(encoding="utf-8")
    texts = list(_without_statements(source))
    tree = pickle.dumps(get_ast(source))  # copied faster than the source is parsed
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments() or ("BinaryOperator" in name and name.rpartition("Operator_")[2] not in BINARY):
            continue
        for occurrence in count(0):
            visitor = MutationVisitor(occurrence, kind())
            try:
                changed = visitor.walk(pickle.loads(tree))
            except AttributeError:  # its operator of exceptions knows no names with dots
                continue
            if not visitor.mutation_applied:
                break
            texts.append(changed.get_code())
    codes = {_code_of(text): text for text in texts}
    for unchanged in (None, _code_of(source)):
        codes.pop(unchanged, None)
    return [Mutant(path, source, text) for text in codes.values()]


def _without_statements(source: str) -> Iterator[str]:
    """Yield the source without one call or raise."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            passed = " " * node.col_offset + "pass\n"
            yield "".join([*lines[: node.lineno - 1], passed, *lines[node.end_lineno :]])


def _code_of(source: str) -> str | None:
    """Return the syntax tree as text, without annotations and docstrings; None if there is none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return ast.dump(tree)


def run_tests(copy: Path, tests: tuple[str, ...], output: Path, plugin: object) -> int:
    """Run the tests in a fork and return the exit code of pytest."""
    child = os.fork()
    if child == 0:
        _call_pytest(copy, tests, output, plugin)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _call_pytest(copy: Path, tests: tuple[str, ...], output: Path, plugin: object) -> None:
    import resource

    import hypothesis
    import pytest

    os.setsid()
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os.environ["PYTHONPATH"] = str(copy / "src")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("mutants")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
    if not isinstance(plugin, CalledFunctions):
        sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    status = 1
    try:
        status = pytest.main([*tests, *options], plugins=[plugin])
    finally:
        os._exit(int(status))


def score(name: str, copy: Path, most: int, seed: int) -> dict[str, object]:
    """Return the numbers of an area; print its survivors."""
    area = AREAS[name]
    package = copy / "src" / "perfcast"
    paths = sorted(path for path in package.rglob("*.py") if _matches(path.relative_to(package), area))
    possible = [mutant for path in paths for mutant in find_mutants(path)]
    drawn = random.Random(seed).sample(possible, min(most, len(possible)))
    output, near = copy / "output.txt", _watch_tests(name, copy, {path: path.read_text("utf-8") for path in paths})
    survived = 0
    for number, mutant in enumerate(drawn, start=1):
        mutant.path.write_text(mutant.changed, encoding="utf-8")
        function = enclosing_function(mutant.path, mutant.source, mutant.changed)
        try:
            if run_tests(copy, area.tests, output, near.of(function)) in (PASSED, NO_TESTS):
                survived += 1
                print(f"survived: {number}: {mutant.path.relative_to(package)} {mutant.difference()}\n", flush=True)
        finally:
            mutant.path.write_text(mutant.source, encoding="utf-8")
    print(f"{name}: {len(drawn) - survived} of {len(drawn)} killed, drawn of {len(possible)}", flush=True)
    return {"area": name, "possible": len(possible), "mutants": len(drawn), "killed": len(drawn) - survived}


def _watch_tests(name: str, copy: Path, sources: dict[Path, str]) -> ChosenTests:
    """Run the tests of an area without a fault, and return what each calls of the sources."""
    output, calls = copy / "output.txt", copy / "calls.pickle"
    for path, source in sources.items():
        path.write_text(with_recorder(path, source), encoding="utf-8")
    if run_tests(copy, AREAS[name].tests, output, CalledFunctions(calls)) != PASSED:
        raise SystemExit(f"{name}: the tests must pass before a fault is planted\n{output.read_text()[-2000:]}")
    for path, source in sources.items():
        path.write_text(source, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):  # those of other modules stay
            compiled.unlink()
    return ChosenTests(**pickle.loads(calls.read_bytes()))


def _matches(path: Path, area: Area) -> bool:
    return any(fnmatch.fnmatch(path.as_posix(), pattern) for pattern in area.modules)


def main() -> None:
    """Score the areas that are named, or all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(AREAS)}; default: all")
    parser.add_argument("--count", type=int, default=150, help="mutants of an area, drawn by the seed (default 150)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default 0)")
    parser.add_argument("--out", type=Path, help="CSV file of the scores")
    options = parser.parse_args()
    if unknown := set(options.areas) - set(AREAS):
        parser.error(f"there is no area {sorted(unknown)[0]!r}")
    for library in PRELOADED:
        importlib.import_module(library)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        ignored = shutil.ignore_patterns("__pycache__", ".*", "results", "build")
        shutil.copytree(PROJECT, copy, ignore=ignored)
        for name in options.areas or AREAS:
            rows.append(score(name, copy, options.count, options.seed))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
