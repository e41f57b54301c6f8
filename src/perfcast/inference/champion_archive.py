"""Champion as one file: a zip archive of its folder with terms and digests, the same bytes for the same folder.

Nothing in it executes when it is read. Published scores that may not be passed on are left out unless they are wanted.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from perfcast import __version__
from perfcast.inference.rules import find_rules
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Role, Tag
from perfcast.schema.table_files import read_parquet, read_table, write_table
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path, file_digests, write_json
from perfcast.utils.result_digests import FOLDER_RECORD, read_record, record_digests, verify_folder

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

TERMS = "terms.json"
"""Member with the terms of the sources, and whether published scores are in it."""
WITHOUT_SCORES = "without_scores"
"""Key of about.json: what replaces the published scores; see `LeftOutScores`."""
_AGAIN = "export it again, or fetch it again"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_SUFFIXES = (".json", ".npy", ".npz", ".parquet", ".txt")
"""Formats that execute nothing when they are read."""
_OPEN_LICENSES = ("Apache-2.0", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "MIT", "MIT License")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MEASURED, _FACTS = "reference_data/measured.parquet", "reference_data/cpu_models.parquet"


@dataclass(frozen=True)
class LeftOutScores:
    """Facts that replace the published scores of a champion: typical rows and measured targets by task.

    `published` are the facts of `PublishedIndex.list_facts`.
    """

    sources: tuple[str, ...]
    typical_rows: Mapping[str, int]
    targets: Mapping[str, Sequence[str]]
    published: Sequence[Any] = ()

    @property
    def note(self) -> str:
        """The note of every answer."""
        return f"scores of measured machines are left out by the terms of {', '.join(self.sources)}"


def list_left_out(champion: Champion, terms: Iterable[Mapping[str, str]]) -> LeftOutScores | None:
    """Return what replaces the published scores of a champion whose sources do not let everybody pass them on.

    Args: `terms` are those of the sources of its scores. Raises: UserError when the predictor consists of the scores.
    """
    closed = tuple(each["title"] for each in terms if each["license"] not in _OPEN_LICENSES)
    if not closed:
        return None
    fact = ""
    if _stores_scores(champion.predictor):
        fact = f"{champion.name} stores the scores of {', '.join(closed)}"
    elif champion.base is not None:
        fact = f"that of {champion.dataset} rests on one of {champion.base.champion.dataset}"
    if fact:
        raise UserError("a shared champion must hold no published scores", fact, "choose another, or --with-scores")
    published = tuple(champion.published_index.list_facts(champion.predictor.targets_))
    return LeftOutScores(closed, champion.typical_rows, champion.targets_of, published)


def _stores_scores(predictor: Predictor) -> bool:
    """Return whether measured scores follow from what a fitted predictor, or one that it is made of, holds."""
    nested = [each for held in vars(predictor).values() if isinstance(held, dict) for each in held.values()]
    return predictor.stores_scores or any(_stores_scores(each) for each in nested if isinstance(each, Predictor))


def pack_champion(folder: Path, out: Path, left_out: LeftOutScores | None, terms: Sequence[Mapping[str, str]]) -> None:
    """Write the folder of a champion as one file, without its published scores where `left_out` replaces them.

    What names a published result goes too: the descriptions of machines that stay fill gaps of others.

    Raises: UserError when the folder holds a file of another format.
    """
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        # the archive has digests of its own
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".*", f"{FOLDER_RECORD}*"))
        if other := [name for name in file_digests(copy) if not _is_allowed(name)]:
            raise UserError("a champion must have files of known formats", f"{other[0]} is another", "make it again")
        if left_out is not None:
            table = read_table(folder / _MEASURED)
            names = [*table.select(role=Role.TARGET), *table.select(tag=Tag.BLOCK)]
            without: dict[str, Any] = {**dict.fromkeys(names, np.nan), table.column_of(Tag.ROW): ""}
            write_table(replace(table, frame=table.frame.assign(**without)), copy / _MEASURED)
            facts, unshared = read_parquet(folder / _FACTS), find_rules(table.dataset).unshared_column
            if unshared in facts:
                facts[facts[unshared].isna()].drop(columns=unshared).to_parquet(copy / _FACTS)
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            write_json(copy / "about.json", {**about, WITHOUT_SCORES: asdict(left_out)})
        write_json(copy / TERMS, {"perfcast": __version__, "scores": left_out is None, "terms": terms})
        record_digests(copy)
        with atomic_path(out) as written, zipfile.ZipFile(written, "w") as archive:
            for name in sorted(file_digests(copy)):
                member = zipfile.ZipInfo(name, _EPOCH)
                member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
                archive.writestr(member, (copy / name).read_bytes(), compresslevel=9)


@contextmanager
def unpack_champion(path: Path) -> Iterator[Path]:
    """Yield the folder of an exported champion, unpacked for this block alone: no other process reads or trusts it.

    Raises: UserError when the file is damaged, too large, or has members that it must not have.
    """
    check_zip(path, "a champion's file", FOLDER_RECORD.__eq__, size_limits.CHAMPION, remedy=_AGAIN, name=str(path))
    with tempfile.TemporaryDirectory(prefix="perfcast-") as temporary:
        folder = Path(temporary)
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if not _is_allowed(info.filename) or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                        raise UserError("members", f"{info.filename!r} is no plain file of a known format")
                archive.extractall(folder)
                names = sorted(archive.namelist())
            if names != sorted([FOLDER_RECORD, *read_record(folder / FOLDER_RECORD)]):
                raise UserError("members", "its record lists others")
            verify_folder(folder)
        except Exception as error:  # any error that a library raises for bytes that it did not write
            fact = error.fact if isinstance(error, UserError) else f"it is damaged ({type(error).__name__})"
            raise UserError(f"{path} must be as it was exported", fact, _AGAIN) from None
        yield folder


def _is_allowed(name: str) -> bool:
    return name == FOLDER_RECORD or (bool(_NAME.fullmatch(name)) and PurePosixPath(name).suffix in _SUFFIXES)
