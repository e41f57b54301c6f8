"""Nothing half-written appears under a final name."""

import os
import stat

import pytest

from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, atomic_path, read_json, sha256, write_json, write_text


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half_width")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "model").write_text("old")
    with pytest.raises(RuntimeError), atomic_folder(folder) as temporary:
        (temporary / "model").write_text("half_width")
        raise RuntimeError
    assert (folder / "model").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "stale").write_text("")
    with atomic_folder(folder) as temporary:
        (temporary / "fresh").write_text("")
    assert [path.name for path in folder.iterdir()] == ["fresh"]


def test_json_is_canonical(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
    write_json(tmp_path / "b.json", {"a": [1.5, None], "b": 1})
    assert sha256(tmp_path / "a.json") == sha256(tmp_path / "b.json")
    assert read_json(tmp_path / "a.json") == {"a": [1.5, None], "b": 1}
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"a": float("nan")})


def test_the_mode_of_a_file_is_kept_and_a_new_one_has_that_of_the_umask(tmp_path):
    private = tmp_path / "private.csv"
    private.write_text("old")
    private.chmod(0o600)
    write_text(private, "new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = os.umask(0o077)
    try:
        write_text(tmp_path / "other.csv", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "other.csv").stat().st_mode) == 0o600


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    target, link = tmp_path / "folder" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    with pytest.raises((UserError, OSError)):
        write_text(loop, "new")


def test_folders_and_pipes_are_refused_and_stay(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a device, pipe or socket"), (tmp_path, "a folder")):
        with pytest.raises(UserError, match=kind):
            write_text(path, "new")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe.csv"]
