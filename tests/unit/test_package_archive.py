"""A champion as one file: equal bytes, equal answers, data terms, and damaged files that are refused in one line."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from champion_project import FEATURES, KNOWN, project

import perfcast
from perfcast.cli.main import main
from perfcast.experiment.fitting import fit_rows
from perfcast.inference.champion import build_features
from perfcast.inference.champion_archive import TERMS, list_left_out, pack_champion
from perfcast.inference.measured_index import PublishedRows
from perfcast.predictors.baselines import NearestPredictor
from perfcast.predictors.mean import Mean
from perfcast.predictors.predictor import load_predictor
from perfcast.predictors.task_rows import task_labels
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import FOLDER_RECORD

PROCESSES, ROUNDS = 8, 6
CLOSED = {"name": "spec_cpu2017", "title": "Published results", "license": "SPEC Fair Use"}
OPEN = {"name": "host_gemm", "title": "Own results", "license": "Apache-2.0"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give every test a cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the exported champion with and without its scores."""
    folder = tmp_path_factory.mktemp("exported")
    champion = perfcast.load_champion(project().folder)
    pack_champion(project().folder, folder / "whole.zip", list_left_out(champion, [OPEN]), [OPEN])
    pack_champion(project().folder, folder / "scoreless.zip", list_left_out(champion, [CLOSED]), [CLOSED])
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


def test_equal_folders_give_equal_bytes_and_opening_them_leaves_no_file(files, tmp_path, home, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    whole = perfcast.load_champion(files / "whole.zip")
    assert whole.predict(KNOWN).to_dict() == perfcast.predict(KNOWN, project().folder).to_dict()
    assert whole.left_out is None and not list(tmp_path.iterdir()) and not home.exists()
    copy = shutil.copytree(project().folder, tmp_path / "copy")
    (copy / ".snakemake_timestamp").touch()
    pack_champion(copy, tmp_path / "again.zip", None, [OPEN])
    assert (tmp_path / "again.zip").read_bytes() == (files / "whole.zip").read_bytes()


def test_without_scores_estimates_are_equal_and_a_note_says_what_is_missing(files):
    scoreless, whole = (perfcast.load_champion(files / name) for name in ("scoreless.zip", "whole.zip"))
    mine, other = (champion.predict(KNOWN).machines[0] for champion in (scoreless, whole))
    assert [each.median for each in mine.estimates] == [each.median for each in other.estimates]
    assert [each.drivers for each in mine.estimates] == [each.drivers for each in other.estimates]
    assert {near.score for each in mine.estimates for near in (*each.neighbors, each.typical_machine)} == {None}
    assert "left out by the terms of Published results" in mine.notes[-1]
    assert not any("left out" in note for note in other.notes)
    frame = scoreless.reference_data.measured.frame
    assert frame[list(scoreless.predictor.targets_)].isna().all(axis=None)
    assert set(frame["result_id"]) == {""} and frame["submission_id"].isna().all()
    ranked = [champion.rank(KNOWN, targets="CINT2017rate >= 100").candidates for champion in (scoreless, whole)]
    assert ranked[0] == ranked[1]
    similar = scoreless.similar(KNOWN, count=1).machines[0]
    assert similar.notes and similar.similar[0].measured.score is None


def test_published_results_are_counts_quartiles_and_months(files):
    measured = project().champion.reference_data.measured.frame
    scoreless = perfcast.load_champion(files / "scoreless.zip")
    groups = measured.groupby(["suite", "cpu_model", "chips"], observed=True)
    shown = {count: key for key, count in groups["base_score"].count().items() if count}
    assert 1 in shown and max(shown) > 2, "both kinds are tested"
    for count, (suite, cpu_model, chips) in shown.items():
        rows = groups.get_group((suite, cpu_model, chips))
        match = PublishedRows((int(rows.index[0]),))
        facts = scoreless.published_index.find_facts(match, "base_score")
        quartiles = rows["base_score"].quantile([0.25, 0.5, 0.75]).tolist() if count > 2 else [None] * 3
        assert (facts.count, facts.low, facts.median, facts.high) == (count, *map(pytest.approx, quartiles))
        assert facts.months.startswith(f"{rows['published_month'].min():%Y-%m}")
        assert facts.quartiles and not facts.results and not facts.groups
    with zipfile.ZipFile(files / "scoreless.zip") as archive:
        published = json.loads(archive.read("about.json"))["without_scores"]["published"]
    few = [scores for _, _, scores in published if scores["count"] < 3]
    assert few and all(scores["low"] is scores["median"] is scores["high"] is None for scores in few)


def test_a_predictor_of_scores_is_not_shared_without_them():
    champion = perfcast.load_champion(project().folder)
    predictor = NearestPredictor()
    predictor.targets_ = champion.predictor.targets_
    stored = replace(champion, name="nearest", predictor=predictor)
    with pytest.raises(UserError, match=r"nearest stores the scores of Published results; .* or --with-scores"):
        list_left_out(stored, [CLOSED])
    assert list_left_out(stored, [OPEN]) is None


def test_scores_are_rebuilt_from_a_gaussian_process_so_it_is_not_shared_even_inside_another(tmp_path):
    standard = project().standard
    table = build_features("spec_cpu2017", standard.frame, standard.columns, FEATURES)
    conf = {"_target_": "perfcast.predictors.gaussian_process.GaussianProcessPredictor", "length_scale_steps": 5}
    rows = np.ones(len(table.frame), dtype=bool)
    fit_rows(Mean(members={"process": conf}), table, rows, None).save(tmp_path / "mean")
    mean = load_predictor(tmp_path / "mean")
    (task,) = task_labels(table.frame.iloc[:1], table.columns)
    process = mean.members_["process"].processes_["base_score"][task]
    rebuilt = np.exp(process.predict(process.points))
    scores = table.frame.loc[task_labels(table.frame, table.columns) == task, "base_score"].to_numpy()
    assert np.median(np.abs(rebuilt / scores - 1)) < 0.01, "its file has no score as it is, and yet"
    champion = replace(perfcast.load_champion(project().folder), name="mean", predictor=mean)
    with pytest.raises(UserError, match="mean stores the scores of Published results"):
        list_left_out(champion, [CLOSED])


def test_the_command_leaves_out_scores_of_spec_by_default(tmp_path, capsys, monkeypatch):
    out = tmp_path / "champion.zip"
    monkeypatch.chdir(tmp_path)
    command = ["champion", "export", "--champion", str(project().folder), "--out", str(out)]
    assert main(command) == 0
    assert "scores of measured machines are left out by the terms of Published SPEC CPU 2017" in capsys.readouterr().err
    terms = json.loads(zipfile.ZipFile(out).read(TERMS))
    assert terms["scores"] is False
    assert {each["name"] for each in terms["terms"]} == {"spec_cpu2017", "cloud_instances"}
    assert main([*command, "--with-scores"]) == 0
    assert json.loads(zipfile.ZipFile(out).read(TERMS))["scores"] is True
    capsys.readouterr()
    flags = ["--champion", str(out), "--processor", "Xeon Gold 6148", "--chips", "2"]
    for words in (["predict", *flags], ["similar", *flags], ["what-if", *flags, "--vary", "cores=16,20"]):
        assert main(words) == 0
        assert "SPECrate2017_int_base" in capsys.readouterr().out
    assert main([*command[:-1], "champion.tar"]) == 2
    assert "--out must end in .zip" in capsys.readouterr().err


def open_at_once(path, barrier, answers):
    """Load the champion in every round of the barrier; answer with the error of each, or None."""
    for number in range(ROUNDS):
        os.environ["HOME"] = f"{path.parent}/home{number}"
        barrier.wait()
        try:
            perfcast.load_champion(path)
            answers.put(None)
        except Exception as error:
            answers.put(f"{type(error).__name__}: {error}")


@pytest.mark.reliability("a champion's file opened by processes at once", cases=ROUNDS * PROCESSES)
def test_processes_open_it_at_once(files, tmp_path):
    path = shutil.copy(files / "whole.zip", tmp_path)
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(PROCESSES), context.SimpleQueue()
    processes = [context.Process(target=open_at_once, args=(Path(path), barrier, answers)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    failed = [text for _ in range(ROUNDS * PROCESSES) if (text := answers.get())]
    for process in processes:
        process.join()
    assert not failed


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
    "a member twice": (lambda members: [*members, members[-1]], "its record lists others"),
    "a path above": (with_name("../evil.json"), "known format"),
    "an absolute path": (with_name("/tmp/evil.json"), "known format"),
    "a path of Windows": (with_name("..\\evil.json"), "known format"),
    "a pickle": (with_name("model/evil.pkl"), "known format"),
    "a link": (with_name("model/link.json", mode=0o120777), "known format"),
    "no record": (lambda members: members[1:], "another kind"),
    "a record of other lines": (lambda members: [(members[0][0], b"{"), *members[1:]], "as it was exported"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damage_is_refused_in_one_line_and_leaves_nothing(files, tmp_path):
    for change, words in DAMAGE.values():
        refuse(rewrite(files / "whole.zip", tmp_path / "damaged.zip", change), tmp_path, words)
        assert not (tmp_path / "evil.json").exists()


def test_truncated_and_foreign_files_are_refused(files, tmp_path):
    content = (files / "whole.zip").read_bytes()
    for wrong in (content[:-40], content[: len(content) // 2], b"", b"PK\x03\x04", b"text" * 100):
        (tmp_path / "damaged.zip").write_bytes(wrong)
        refuse(tmp_path / "damaged.zip", tmp_path, "damaged")
    middle = len(content) // 2
    (tmp_path / "damaged.zip").write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    refuse(tmp_path / "damaged.zip", tmp_path, "")


def test_sizes_are_bounded(files, tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "CHAMPION", 300_000)
    refuse(files / "whole.zip", tmp_path, "must decompress to at most 300000 bytes")


def refuse(path: Path, folder: Path, words: str) -> None:
    """Check that loading fails in one line, and that no folder of the cache is left."""
    with pytest.raises(UserError) as error:
        perfcast.load_champion(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    cache = folder / "home" / ".cache" / "perfcast" / "champions"
    assert not cache.exists() or not list(cache.iterdir())
