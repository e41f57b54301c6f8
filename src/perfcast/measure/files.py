"""Write what was measured: a table with equal bytes for equal tables, and the machine's description beside it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

from perfcast.errors import UserError
from perfcast.io import atomic_path, write_json
from perfcast.measure.machine import describe_machine


def require_clean(clean: int, measured: int) -> None:
    """Raise UserError when not one of the measured configurations was left alone by other work."""
    if not clean:
        raise UserError(
            "measuring needs a core to itself",
            f"other work interrupted every one of {measured} configurations",
            "try again on an idle machine, or with a larger --budget-minutes",
        )


def write(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """Write <name>.csv.gz and <name>.json into the folder."""
    with atomic_path(folder / f"{name}.csv.gz") as path:
        # no file name and no time in the header: equal tables give equal bytes
        path.write_bytes(gzip.compress(frame.to_csv(index=False, lineterminator="\n").encode(), mtime=0))
    write_json(folder / f"{name}.json", describe_machine())
