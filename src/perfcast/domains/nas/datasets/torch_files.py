"""Safe reader of PyTorch files of numbers, texts, lists and dictionaries: it executes nothing in them."""

from __future__ import annotations

import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

_REMEDY = "ingest the source again; files that contain code are never opened"


def read_torch(path: Path) -> Any:
    """Return the content of a .pt file that holds plain values only.

    NumPy's 64-bit integers become integers. Stand-ins of this module replace the NumPy functions that the file names;
    `weights_only` blocks NumPy itself and every other name.

    Raises:
        UserError: The file is absent or broken, or names anything else.
    """
    import torch
    from torch.serialization import safe_globals

    if not path.is_file():
        raise UserError("a PyTorch file must exist", f"there is no {path.name}", "ingest the source again")
    check_zip(path, "a PyTorch file", lambda name: name.endswith("/data.pkl"), size_limits.TORCH, remedy=_REMEDY)
    stand_ins = [
        *((_make_integer, f"numpy.{package}.multiarray.scalar") for package in ("core", "_core")),
        (_Dtype, "numpy.dtype"),
        (_encode_latin, "_codecs.encode"),
    ]
    try:
        with warnings.catch_warnings(action="ignore"), safe_globals(stand_ins):  # type: ignore[arg-type]
            return torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds of errors
        text = " ".join(str(error).split())[:80] or type(error).__name__
        if names := _list_globals(path) - {name for _, name in stand_ins}:
            text = f"names {', '.join(sorted(names))}"
        else:
            text = f"is broken ({text})"
        raise UserError(
            "a PyTorch file from outside must hold plain values only", f"{path.name} {text}", _REMEDY
        ) from None


class _Dtype:
    """Stand-in for numpy.dtype that accepts the 64-bit integer alone."""

    def __init__(self, name: str, *_: Any) -> None:
        if name != "i8":
            raise ValueError(f"a number of type {name!r}")

    def __setstate__(self, state: Any) -> None:
        """Ignore the byte order, because `_make_integer` reads little-endian."""


def _make_integer(dtype: _Dtype, content: bytes) -> int:
    if not isinstance(dtype, _Dtype) or len(content) != 8:
        raise ValueError("not a 64-bit integer")
    return int.from_bytes(content, "little", signed=True)


def _encode_latin(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"encoding {encoding!r}")
    return text.encode("latin1")


def _list_globals(path: Path) -> set[str]:
    """Return the names that a file would import, from its instructions, without executing them."""
    globals_named: set[str] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            texts: list[str] = []
            for code, argument, _ in pickletools.genops(archive.read(member)):
                if code.name == "GLOBAL":
                    globals_named.add(str(argument).replace(" ", "."))
                elif code.name == "STACK_GLOBAL":
                    globals_named.add(".".join(texts[-2:]))
                elif isinstance(argument, str):
                    texts.append(argument)
    except (zipfile.BadZipFile, StopIteration, ValueError):
        return set()
    return globals_named
