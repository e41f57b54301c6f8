"""Champion of a release: one file whose SHA-256 is pinned in the wheel, kept for all folders of a user."""

from __future__ import annotations

import hashlib
import os
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.request import urlopen

from perfcast import __version__
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, read_object

PIN = Path(__file__).parents[1] / "champion.json"
"""Dataset, address, SHA-256 and bytes of the file: `make release` writes it into the wheel, a clone has none."""
_TIMEOUT = 20.0
"""Seconds without a byte."""


def default_champion(results: Path, dataset: str) -> Path:
    """Return the folder of a run's champion; without a run, the downloaded file, where there is one."""
    folder, file = results / "champion" / dataset, _downloaded(dataset)
    stands_in = results == Path("results") and not folder.exists() and PIN.is_file() and file.is_file()
    return file if stands_in else folder


def download_champion(given: Path | None) -> Path:
    """Return the champion of this release, fetched from the first place that has it.

    The places are `given`, a file or a folder with it, or else the folders of PERFCAST_MIRROR, then its address.
    Raises: UserError when the package pins none, or no place has the file of its SHA-256.
    """
    if not PIN.is_file():
        raise UserError("the package must be a released wheel", "a source checkout pins no champion", "run `make demo`")
    pin = read_object(PIN, "dataset", "url", "sha256", "bytes")
    mirrors, out = os.environ.get("PERFCAST_MIRROR", "").split(os.pathsep), _downloaded(pin["dataset"])
    failed = []
    for place in [str(given)] if given else [*filter(None, mirrors), pin["url"]]:
        path = Path(place) / PurePosixPath(pin["url"]).name if Path(place).is_dir() else Path(place)
        try:
            with urlopen(place, timeout=_TIMEOUT) if "://" in place else path.open("rb") as file:
                content = file.read(pin["bytes"] + 1)
        except (OSError, ValueError, HTTPException) as error:
            failed.append(f"{place}: {getattr(error, 'reason', error)}")
            continue
        if hashlib.sha256(content).hexdigest() == pin["sha256"]:
            with atomic_path(out) as temporary:
                temporary.write_bytes(content)
            return out
        failed.append(f"{place}: it has another SHA-256 than {pin['sha256'][:12]}…")
    remedy = "fetch it with a browser and give --from FILE, or set PERFCAST_MIRROR to a folder with it"
    raise UserError("the champion of this release must be there", "; ".join(failed), remedy)


def _downloaded(dataset: str) -> Path:
    return Path.home() / ".cache" / "perfcast" / f"{dataset}-{__version__}.zip"
