"""Read PyTorch files of plain numbers, texts, lists and dictionaries from outside, executing nothing in them."""

from __future__ import annotations

import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.unpacking import check_zip

_REMEDY = "ingest the source again; a file that wants to run code is never opened"


def read_torch(path: Path) -> Any:
    """Return the content of a .pt file that holds only plain values.

    NumPy's 64-bit integers are read as integers, by functions of this module under the names that the file calls:
    NumPy's own, and anything else that a pickle may name, are out of reach (`weights_only`).
    Raises: UserError when the file is absent or broken, or names anything else.
    """
    import torch
    from torch.serialization import safe_globals

    if not path.is_file():
        raise UserError("a PyTorch file must exist", f"there is no {path.name}", "ingest the source again")
    check_zip(path, "a PyTorch file", lambda name: name.endswith("/data.pkl"), bounds.TORCH, remedy=_REMEDY)
    stand_ins = [
        *((_integer, f"numpy.{package}.multiarray.scalar") for package in ("core", "_core")),
        (_Dtype, "numpy.dtype"),
        (_latin_bytes, "_codecs.encode"),
    ]
    try:
        with warnings.catch_warnings(action="ignore"), safe_globals(stand_ins):  # type: ignore[arg-type]
            return torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds of errors at what it does not read
        named = _globals(path) - {"numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"}
        named -= {"numpy.dtype", "_codecs.encode"}
        fact = f"{path.name} names {', '.join(sorted(named))}" if named else f"{path.name} is broken ({_brief(error)})"
        raise UserError("a PyTorch file from outside must hold plain values only", fact, _REMEDY) from None


class _Dtype:
    """Stands in for numpy.dtype, of which a file may only ask for the 64-bit integer."""

    def __init__(self, name: str, *_: Any) -> None:
        if name != "i8":
            raise ValueError(f"a number of type {name!r}")

    def __setstate__(self, state: Any) -> None:
        """Take and forget the byte order: `_integer` reads little-endian."""


def _integer(dtype: _Dtype, content: bytes) -> int:
    if not isinstance(dtype, _Dtype) or len(content) != 8:
        raise ValueError("not a 64-bit integer")
    return int.from_bytes(content, "little", signed=True)


def _latin_bytes(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"encoding {encoding!r}")
    return text.encode("latin1")


def _globals(path: Path) -> set[str]:
    """Return the names that a file would import, read off its instructions without following them."""
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


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:80] or type(error).__name__
