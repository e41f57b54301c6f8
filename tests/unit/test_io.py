"""Nothing half-written appears under a final name."""

import pytest

from perfcast.utils.io import atomic_folder, atomic_path, read_json, sha256, write_json


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
