"""Arguments of the constructors of dataclasses, read from source text: networks take seconds to import."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from perfcast.utils.errors import UserError, unknown_name

_ROOT = Path(__file__).parents[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a finite number", _is_number),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "str": ("text", lambda value: isinstance(value, str)),
    "Sequence[float]": (
        "a list of finite numbers",
        lambda value: isinstance(value, list) and bool(value) and all(map(_is_number, value)),
    ),
}
"""Annotation -> its words, and the check of a value; values of another annotation are checked by the class."""


@cache
def constructor_fields(path: str) -> Mapping[str, str]:
    """Return the annotation of every argument that the dataclass of a dotted path takes, by name."""
    module, _, name = path.rpartition(".")
    file = _ROOT.joinpath(*module.split(".")[1:])
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if not module.startswith("perfcast.") or not file.is_file():
        return {}
    body = ast.parse(file.read_bytes()).body
    node = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
    if node is None:
        return {}
    imported = {
        alias.asname or alias.name: f"{statement.module}.{alias.name}"
        for statement in body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    fields: dict[str, str] = {}
    for base in reversed(node.bases):
        if isinstance(base, ast.Name):
            fields |= constructor_fields(imported.get(base.id, f"{module}.{base.id}"))
    if not _is_dataclass(node):
        return fields
    for entry in node.body:
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name) and _is_argument(entry):
            fields[entry.target.id] = ast.unparse(entry.annotation)
    return fields


def _is_dataclass(node: ast.ClassDef) -> bool:
    names = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return any(isinstance(name, ast.Name) and name.id == "dataclass" for name in names)


def _is_argument(entry: ast.AnnAssign) -> bool:
    """Return whether an annotation of a class is an argument, and no class variable or learned attribute."""
    if ast.unparse(entry.annotation).startswith("ClassVar"):
        return False
    options = entry.value.keywords if isinstance(entry.value, ast.Call) else []
    return not any(option.arg == "init" and ast.unparse(option.value) == "False" for option in options)


def check_arguments(path: str, arguments: Mapping[str, Any], where: str) -> None:
    """Check that a dataclass takes arguments of these names and values.

    Raises: UserError, which names the place `where`.
    """
    fields = constructor_fields(path)
    for name, value in arguments.items():
        if name not in fields:
            raise unknown_name(f"each of {where}", str(name), fields)
        annotation = fields[name].removesuffix(" | None")
        if value is None and annotation != fields[name]:
            continue
        words, is_right = _KINDS.get(annotation, ("", lambda value: True))
        if not is_right(value):
            raise UserError(f"{where}.{name} must be {words}", f"it is {value!r:.80}")
