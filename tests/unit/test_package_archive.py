"""A champion as one file: equal bytes, equal answers, data terms, and damaged files that are refused in one line."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from bridged_project import DATASET, bridged_results
from champion_project import KNOWN, project

import perfcast
from perfcast.cli.main import main
from perfcast.config.dataset_conf import read_dataset
from perfcast.inference.champion_archive import TERMS, pack_champion
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import FOLDER_RECORD

ROOT = Path(__file__).parents[2]
TERMS_OF_ALL = [{"name": "spec_cpu2017", "title": "Published results", "license": "SPEC Fair Use"}]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with the exported champion, and with that of both suites."""
    folder = tmp_path_factory.mktemp("exported")
    pack_champion(project().folder, folder / "whole.zip", TERMS_OF_ALL)
    pack_champion(bridged_results() / "champion" / DATASET, folder / "both.zip", TERMS_OF_ALL)
    return folder


def rewrite(path, out, change):
    """Copy an archive; `change` edits the list of (information, content), of which the first is the record."""
    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    members.sort(key=lambda pair: pair[0].filename != FOLDER_RECORD)
    with zipfile.ZipFile(out, "w") as archive:
        for info, content in change(members):
            archive.writestr(info, content)
    return out


def test_equal_folders_give_equal_bytes_and_opening_them_leaves_no_file(files, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    whole = perfcast.load_champion(files / "whole.zip")
    assert whole.predict(KNOWN).to_dict() == perfcast.predict(KNOWN, project().folder).to_dict()
    assert not list(tmp_path.iterdir())
    copy = shutil.copytree(project().folder, tmp_path / "copy")
    (copy / ".snakemake_timestamp").touch()
    pack_champion(copy, tmp_path / "again.zip", TERMS_OF_ALL)
    assert (tmp_path / "again.zip").read_bytes() == (files / "whole.zip").read_bytes()


def test_it_holds_the_results_that_it_learned(files):
    measured = project().champion.reference_data.measured.frame
    exported = perfcast.load_champion(files / "whole.zip").reference_data.measured.frame
    pd.testing.assert_frame_equal(exported, measured)


def test_the_command_writes_the_terms_of_all_sources(tmp_path, capsys, monkeypatch):
    out = tmp_path / "champion.zip"
    monkeypatch.chdir(tmp_path)
    command = ["champion", "export", "--champion", str(project().folder), "--out", str(out)]
    assert main(command) == 0
    conf = read_dataset(ROOT / "conf", "spec_cpu2017").sources
    terms = json.loads(zipfile.ZipFile(out).read(TERMS))["terms"]
    assert {each["name"] for each in terms} == {*conf.required, *conf.optional}
    assert all(each["license"] and each["terms"] for each in terms)
    capsys.readouterr()
    flags = ["--champion", str(out), "--processor", "Xeon Gold 6148", "--chips", "2"]
    for words in (["predict", *flags], ["similar", *flags], ["what-if", *flags, "--vary", "cores=16,20"]):
        assert main(words) == 0
        assert "SPECrate2017_int_base" in capsys.readouterr().out
    assert main([*command[:-1], "champion.tar"]) == 2
    assert "--out must end in .zip" in capsys.readouterr().err


def test_one_file_answers_in_both_suites_alone(files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "both.zip"
    folder = ["--results", str(bridged_results())]
    assert main(["champion", "export", *folder, "--dataset", DATASET, "--out", str(out)]) == 0
    assert {each["name"] for each in json.loads(zipfile.ZipFile(out).read(TERMS))["terms"]} >= {DATASET, "spec_cpu2017"}
    capsys.readouterr()
    described = ["predict", "--processor", "Xeon Gold 6148", "--chips", "2", "--csv"]
    for suite in ([], ["--suite", "2017"], ["--suite", "2026"]):
        answers = []
        for place in (folder, ["--champion", str(out)]):
            assert main([*described, *suite, *place]) == 0
            answers.append(capsys.readouterr().out)
        assert answers[0] == answers[1]
    assert main([*described, "--suite", "2006", "--champion", str(out)]) == 2
    assert "spec_cpu2017 or spec_cpu2026" in capsys.readouterr().err
    assert main(["rank", str(write_candidates(tmp_path)), "--champion", str(out), "--csv"]) == 0
    assert "2026" not in capsys.readouterr().out, "the first suite alone, as with a folder"


def write_candidates(folder):
    path = folder / "candidates.csv"
    path.write_text("processor,chips\nXeon Gold 6148,1\nXeon Gold 6148,2\n")
    return path


def member(name, content=b"{}", mode=0o644):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info, content


def with_name(name, mode=0o644):
    """Add a member, which the record lists with its true digest."""

    def change(members):
        record = members[0][1] + f"{hashlib.sha256(b'{}').hexdigest()}  {name}\n".encode()
        return [(members[0][0], record), *members[1:], member(name, mode=mode)]

    return change


DAMAGE = {
    "a changed member": (lambda members: [*members[:-1], (members[-1][0], b"{}")], "changed"),
    "a member too many": (lambda members: [*members, member("model/more.json")], "its record lists others"),
    "a member missing": (lambda members: members[:-1], "its record lists others"),
    "a path above": (with_name("../evil.json"), "no plain file of a champion"),
    "a pickle": (with_name("model/evil.pkl"), "no plain file of a champion"),
    "a link": (with_name("model/link.json", mode=0o120777), "no plain file of a champion"),
    "no record": (lambda members: members[1:], "another kind"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damage_is_refused_in_one_line_and_leaves_nothing(files, tmp_path):
    for change, words in DAMAGE.values():
        refuse(rewrite(files / "whole.zip", tmp_path / "damaged.zip", change), words)
        assert not (tmp_path / "evil.json").exists()


def test_truncated_and_foreign_files_are_refused(files, tmp_path):
    content = (files / "whole.zip").read_bytes()
    for wrong in (content[:-40], content[: len(content) // 2], b"", b"PK\x03\x04", b"text" * 100):
        (tmp_path / "damaged.zip").write_bytes(wrong)
        refuse(tmp_path / "damaged.zip", "damaged")
    middle = len(content) // 2
    (tmp_path / "damaged.zip").write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    refuse(tmp_path / "damaged.zip", "")


def test_sizes_are_bounded(files, tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "CHAMPION", 300_000)
    refuse(files / "whole.zip", "must decompress to at most 300000 bytes")
    with pytest.raises(UserError, match="must have at most 300000 bytes"):
        pack_champion(project().folder, tmp_path / "large.zip", TERMS_OF_ALL)
    assert not (tmp_path / "large.zip").exists()


def test_nothing_is_unpacked_of_a_file_with_members_that_its_record_lacks(files, tmp_path, monkeypatch):
    zeros = member("model/zeros.npy", bytes(50_000_000))
    path = rewrite(files / "whole.zip", tmp_path / "bomb.zip", lambda members: [*members, zeros])
    unpacked = []
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: unpacked.append(1))
    refuse(path, "its record lists others")
    assert not unpacked


def refuse(path: Path, words: str) -> None:
    """Check that loading fails in one line."""
    with pytest.raises(UserError) as error:
        perfcast.load_champion(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
