"""Heavy libraries that a command imports: none to read its options, and only what it uses to run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
HEAVY = (
    *("torch", "pytorch_lightning", "sklearn", "scipy"),
    *("mlflow", "lightgbm", "matplotlib", "fastapi"),
)

ALLOWED = {
    "cli serve": {"fastapi"},
    "cli what_if": {"matplotlib"},
    "cli.measure gemm": {"torch"},
    "cli.measure interference": {"torch"},
    "cli.pipeline plots": {"matplotlib"},
    "cli.pipeline record": {"mlflow", "fastapi", "scipy"},
    "cli.pipeline report": {"matplotlib"},
}
"""What a command may import beside NumPy, pandas and Arrow, all others nothing; a predictor adds what it is made of."""

NETWORK = {"torch", "pytorch_lightning", "matplotlib", "scipy", "sklearn"}
"""Lightning and the embeddings of numbers import the last three themselves."""

OF_PREDICTORS = {
    "nearest": set(),
    "ridge": set(),
    "power_law": {"scipy"},
    "hybrid_trees": {"sklearn", "scipy"},
    "random_forest": {"sklearn", "scipy"},
    "lightgbm": {"lightgbm", "sklearn", "scipy"},
    "mlp": NETWORK,
    "ncpp": NETWORK,
}
"""What the training of a predictor may import."""

_COMMANDS = f"""
import ast, importlib, inspect, json, os, sys
from pathlib import Path
import pandas, pyarrow.parquet
from perfcast.cli.command_parser import COMMANDS, MEMBERS, TypedCommand, build_parser, load_command

def imported():
    return [name for name in {HEAVY!r} if name in sys.modules]

def run_imports(command):
    path = Path(inspect.getfile(getattr(command, "function", command)))
    functions = ast.walk(ast.parse(path.read_text()))
    if hasattr(command, "function"):
        functions = [each for each in functions if getattr(each, "name", "") == command.function.__name__]
    for function in functions:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.ImportFrom) and node.module.startswith("perfcast"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{{node.module}}.{{alias.name}}")

commands = [("cli", name) for name in COMMANDS]
commands += [(f"cli.{{family}}", name) for family, names in MEMBERS.items() for name in names]
found = {{}}
for package, name in commands:
    end, start = os.pipe()
    if os.fork() == 0:
        build_parser(TypedCommand(package, name))
        parsed = imported()
        run_imports(load_command(package, name))
        os.write(start, json.dumps([parsed, imported()]).encode())
        os._exit(0)
    os.close(start)
    found[f"{{package}} {{name}}"] = json.loads(os.read(end, 10_000))
    os.wait()
print(json.dumps(found))
"""

_TRAININGS = f"""
import json, os, sys
from pathlib import Path
import numpy as np, pandas as pd
from perfcast.experiment import training  # what a training job imports
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.selection import make_predictor
from perfcast.schema.table import infer_columns

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.random((80, 3)) + 1, columns=["a", "b", "c"])
y = X.sum(axis=1).to_frame("y")
found = {{}}
for name in {list(OF_PREDICTORS)!r}:
    end, start = os.pipe()
    if os.fork() == 0:
        conf = read_predictor(Path("conf"), name)
        arguments = next(iter(conf.settings("quick").values()))
        predictor = make_predictor(conf.target, arguments, 0 if conf.stochastic else None)
        predictor.fit(X, y, columns=infer_columns(X), validation=np.arange(80) > 60).predict(X)
        os.write(start, json.dumps([library for library in {HEAVY!r} if library in sys.modules]).encode())
        os._exit(0)
    os.close(start)
    found[name] = json.loads(os.read(end, 10_000))
    os.wait()
print(json.dumps(found))
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def imports_of_commands() -> dict[str, list[list[str]]]:
    return json.loads(run(_COMMANDS))


def test_options_are_read_without_heavy_libraries(imports_of_commands: dict[str, list[list[str]]]) -> None:
    assert {command: parsed for command, (parsed, _) in imports_of_commands.items() if parsed} == {}


def test_commands_import_only_what_they_use(imports_of_commands: dict[str, list[list[str]]]) -> None:
    imported = {command: set(names) for command, (_, names) in imports_of_commands.items() if names}
    assert {command: names - ALLOWED.get(command, set()) for command, names in imported.items()} == {
        command: set() for command in imported
    }


def test_trainings_import_only_what_they_use() -> None:
    imported = json.loads(run(_TRAININGS))
    assert {name: set(names) - OF_PREDICTORS[name] for name, names in imported.items()} == {
        name: set() for name in OF_PREDICTORS
    }
