"""A champion of which a file was lost, cut or replaced is refused in one line, and nothing of it is executed."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from champion_project import project

from perfcast.cli.main import main
from perfcast.inference import load_champion
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import FOLDER_RECORD

FILES = sorted(path.relative_to(project().folder).as_posix() for path in project().folder.rglob("*") if path.is_file())


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.reliability("a flipped bit in a result file")
@pytest.mark.parametrize("name", FILES)
def test_load_champion_refuses_a_changed_file(tmp_path, name):
    folder, marker = tmp_path / "champion", tmp_path / "executed"
    shutil.copytree(project().folder, folder)
    whole = (folder / name).read_bytes()
    for planted in (pickle.dumps(Planted(marker)), b"", whole[: len(whole) // 2], b"{}", b"[]"):
        (folder / name).write_bytes(planted)
        with pytest.raises(
            UserError, match=r"as its stage wrote it|as it was saved|must be JSON|record of digests"
        ) as raised:
            load_champion(folder)
        assert "\n" not in str(raised.value)
    (folder / name).unlink()
    if name == FOLDER_RECORD:  # a folder without a record is read as it is
        return
    with pytest.raises(UserError) as raised:
        load_champion(folder)
    assert "\n" not in str(raised.value)
    assert not marker.exists()


@pytest.mark.reliability("wrong fields of machines, and changed files of a champion")
def test_predict_command_reports_a_changed_champion_in_one_line(tmp_path, capsys):
    shutil.copytree(project().folder, tmp_path / "champion")
    (tmp_path / "champion" / "reference_data" / "measured.parquet").write_bytes(b"PAR1")
    options = ["--champion", str(tmp_path / "champion"), "--processor", "Xeon Gold 6148", "--chips", "2"]
    assert main(["predict", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
