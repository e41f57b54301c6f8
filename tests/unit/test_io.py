"""Nothing half-written appears under a final name; errors of the disk are one line, bugs keep their traceback."""

import errno
import os
import re
import sqlite3
import stat
import subprocess
import sys

import pytest

from perfcast.cli import main as cli
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError, explain_os_error
from perfcast.utils.io import (
    TEMPORARY,
    abandoned_paths,
    atomic_folder,
    atomic_path,
    read_json,
    read_json_text,
    read_object,
    remove_path,
    sha256,
    temporary_folder,
    write_json,
    write_text,
)


def test_a_failure_leaves_the_old_file_and_folder_and_a_folder_is_replaced_as_a_whole(tmp_path):
    path, folder = tmp_path / "a.txt", tmp_path / "run"
    path.write_text("old")
    folder.mkdir()
    (folder / "model").write_text("old")
    for make, name in ((atomic_path, "a.txt"), (atomic_folder, "run")):
        with pytest.raises(RuntimeError), make(tmp_path / name) as temporary:
            (temporary / "model" if temporary.is_dir() else temporary).write_text("half")
            raise RuntimeError
    assert path.read_text() == (folder / "model").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [path, folder]
    with atomic_folder(folder) as temporary:
        (temporary / "fresh").write_text("")
    assert [each.name for each in folder.iterdir()] == ["fresh"]


def test_json_is_canonical(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
    write_json(tmp_path / "b.json", {"a": [1.5, None], "b": 1})
    assert sha256(tmp_path / "a.json") == sha256(tmp_path / "b.json")
    assert read_json(tmp_path / "a.json") == {"a": [1.5, None], "b": 1}
    write_json(tmp_path / "text.json", {"name": "µ"})
    assert (tmp_path / "text.json").read_text(encoding="utf-8") == '{\n  "name": "µ"\n}\n', "people read it"
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


def test_folders_files_and_pipes_are_refused_and_stay(tmp_path):
    pipe, path = tmp_path / "pipe.csv", tmp_path / "run"
    os.mkfifo(pipe)
    path.write_text("old")
    for wrong, kind in ((pipe, "a device, pipe or socket"), (tmp_path, "a folder")):
        with pytest.raises(UserError, match=kind):
            write_text(wrong, "new")
    with pytest.raises(UserError, match="is a file"), atomic_folder(path):
        pass
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["pipe.csv", "run"] and path.read_text() == "old"


def test_a_file_is_replaced_and_never_written_in_place(tmp_path):
    path, other_name = tmp_path / "table.csv", tmp_path / "same file"
    path.write_text("old")
    other_name.hardlink_to(path)
    with path.open() as reader:
        with atomic_path(path) as temporary:
            temporary.write_text("new")
            assert path.read_text() == "old", "until the block ends"
            assert temporary.parent == path.parent, "a rename crosses no file system"
            assert temporary.suffix == path.suffix
            assert TEMPORARY.match(temporary.name)
        assert reader.read() == "old", "who reads it meanwhile has one version"
    assert path.read_text() == "new"
    assert other_name.read_text() == "old"


def test_a_killed_writer_leaves_the_old_file_and_what_it_wrote_counts_as_abandoned(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model").write_text("old")
    write_text(tmp_path / "table.csv", "old")
    script = (
        "import os, sys; from pathlib import Path; from perfcast.utils.io import atomic_folder, atomic_path\n"
        "folder = Path(sys.argv[1])\n"
        "with atomic_path(folder / 'table.csv') as file, atomic_folder(folder / 'run') as run:\n"
        "    file.write_text('half'); (run / 'model').write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -9
    assert (tmp_path / "table.csv").read_text() == "old"
    assert (tmp_path / "run" / "model").read_text() == "old"
    left = sorted(abandoned_paths(tmp_path))
    assert len(left) == 2
    for path in left:
        remove_path(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run", "table.csv"]


def test_only_what_nobody_writes_is_abandoned(tmp_path):
    inside = tmp_path / "kept"
    (inside / "deep").mkdir(parents=True)
    for name in ("deep/.left.abcd1234.csv", ".left.abcd1234", "table.csv", ".hidden"):
        (inside / name).write_text("")
    (inside / ".gone.abcd1234").symlink_to("nowhere")  # as one that was renamed meanwhile
    with atomic_path(inside / "table.csv"), atomic_folder(inside / "run"):
        listed = {path.relative_to(inside).as_posix() for path in abandoned_paths(tmp_path)}
        assert listed == {"deep/.left.abcd1234.csv", ".left.abcd1234"}
    assert {path.name for path in abandoned_paths(tmp_path, without=[inside / "deep"])} == {".left.abcd1234"}


REFUSED = {
    '{"a": 1, "a": 2}': "a name is repeated",
    "[NaN]": "must be finite, but found NaN",
    "[1, -Infinity]": "must be finite, but found -Infinity",
    "{1: 2}": "must be JSON",
    b"\xff\xfe\x00": "must be JSON",
    "[" * 200_000: "deep at most",
}


def test_json_of_users_is_refused_in_one_line():
    for text, fact in REFUSED.items():
        with pytest.raises(UserError, match=f"the request.*{fact}|{fact}.*the request") as refused:
            read_json_text(text, "the request")
        assert "\n" not in str(refused.value)
    assert read_json_text('{"a": [1, null], "b": {"a": "\u00e9"}}', "x") == {"a": [1, None], "b": {"a": "\u00e9"}}


def test_json_files_are_refused_in_one_line(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match="there is no such file"):
        read_json(path)
    for content in (b"{", b"\xff", b"[" * 200_000):
        path.write_bytes(content)
        with pytest.raises(UserError, match="must be JSON") as refused:
            read_json(path)
        assert len(str(refused.value)) < 600 + len(str(path))
    path.write_text("[1]")
    with pytest.raises(UserError, match="one JSON object, but it holds list"):
        read_object(path)
    path.write_text('{"a": null}')
    assert read_object(path, "a") == {"a": None}
    with pytest.raises(UserError, match=r"key .b."):
        read_object(path, "a", "b")
    monkeypatch.setattr(size_limits, "JSON", 11)
    assert read_json(path) == {"a": None}, "as large as the limit"
    monkeypatch.setattr(size_limits, "JSON", 10)
    with pytest.raises(UserError, match="at most 10 bytes"):
        read_json(path)


def test_a_link_to_a_folder_stays_one_when_it_is_replaced_and_goes_alone_when_it_is_removed(tmp_path):
    target, link = tmp_path / "elsewhere", tmp_path / "run"
    target.mkdir()
    (target / "stale").write_text("")
    link.symlink_to(target)
    with atomic_folder(link) as temporary:
        (temporary / "fresh").write_text("")
    assert link.is_symlink()
    assert [path.name for path in target.iterdir()] == ["fresh"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    remove_path(link)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    remove_path(target)
    remove_path(target)  # by another process, meanwhile
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "results/a"), "must have room.*results/a.*make room"),
        (OSError("Not enough free space to write 800 bytes"), "must have room"),
        (sqlite3.OperationalError("database or disk is full"), "must have room"),
        (PermissionError(errno.EACCES, "Permission denied", "results/a"), "must have access.*results/a"),
        (OSError(errno.EIO, "Input/output error"), "must work"),
    ],
)  # fmt: skip
def test_an_error_of_the_disk_is_one_line(error, words):
    assert re.search(words, str(explain_os_error(error)))
    wrapped = RuntimeError("the store failed")
    wrapped.__cause__ = ValueError("in between")
    wrapped.__cause__.__context__ = error
    assert str(explain_os_error(wrapped)) == str(explain_os_error(error))


def test_other_errors_are_not_explained_nor_an_absent_file_that_is_the_cause_of_one():
    for error in (ValueError("a bug"), KeyError("another"), OSError()):
        assert explain_os_error(error) is None
        error.__context__ = error  # a loop
        assert explain_os_error(error) is None
    absent = FileNotFoundError(errno.ENOENT, "No such file", "a")
    assert re.search("readable and writable.*a: no such file", str(explain_os_error(absent)))
    wrapped = RuntimeError("a bug")
    wrapped.__cause__ = absent
    assert explain_os_error(wrapped) is None


def test_the_command_ends_with_code_2_and_one_line(monkeypatch, tmp_path, capsys):
    def refuse(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("perfcast.ops.doctor.read_yaml", refuse)
    assert cli.main(["doctor", "--project", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("perfcast doctor: the disk must have room")
    assert message.count("\n") == 1


def test_temporary_folders_of_killed_commands_go_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names = ("perfcast-temporary-abandoned", "perfcast-temporary-new", "perfcast-mine", "perfcast-temporary-file")
    for name in names[:3]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").touch()
    (tmp_path / names[3]).touch()
    (tmp_path / "perfcast-temporary-link").symlink_to(tmp_path / "perfcast-mine")
    with temporary_folder() as held:
        for path in (tmp_path / names[0], tmp_path / names[2], tmp_path / names[3], held):
            os.utime(path, (0, 0))
        with temporary_folder():
            assert held.is_dir()
            assert [name for name in names if not (tmp_path / name).exists()] == ["perfcast-temporary-abandoned"]
    assert not held.exists()
    assert (tmp_path / "perfcast-mine" / "content").exists()
