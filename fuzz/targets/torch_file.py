"""PyTorch files of plain values: any instructions inside a whole archive. Nothing that they name may run."""

from __future__ import annotations

import io
import pickle
import tempfile
import zipfile
from pathlib import Path

import torch
from _refusing import refusing, written

from perfcast.domains.nas.datasets.search_spaces import read_torch

_path = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-")) / "a.pt"
torch.save([1.5, {"arch": ["x", 2]}, None], _path)
with zipfile.ZipFile(_path) as _whole:
    PARTS = {name: _whole.read(name) for name in _whole.namelist()}
PICKLE = next(name for name in PARTS if name.endswith("/data.pkl"))
SEEDS = [
    PARTS[PICKLE],
    pickle.dumps([1, 2.5, "x", {"a": (1, None, True)}, b"y"], 2),
    b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.",
    b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00i8K\x00K\x01\x87RC\x08aaaaaaaa\x86R.",
]


def check(data: bytes) -> None:
    """Read a file whose instructions are the input."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, part in {**PARTS, PICKLE: data}.items():
            archive.writestr(name, part)
    with refusing():
        read_torch(written("file.pt", buffer.getvalue()))
