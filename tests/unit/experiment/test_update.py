"""`perfcast update`: a newer dump is learned whole, or refused in one line that leaves every file as it was."""

import csv
import errno
import gzip
import io
import re
import shutil

import pandas as pd
import pytest
from champion_project import KNOWN, project
from loopback import Loopback, Page

import perfcast
from perfcast.cli.main import main
from perfcast.experiment.forecast_scores import LABEL, list_scores, summarize_labels, summarize_scores
from perfcast.experiment.update import PREDICTIONS, update_champion
from perfcast.schema.table_files import read_parquet
from perfcast.sources.download import DownloadLimits
from perfcast.utils.errors import UserError
from perfcast.utils.io import file_digests, read_json, sha256

DATASET, ENTITY, UNTIL = "spec_cpu2017", "xeon gold 6148", "2025-03"


def make_dump(factor=1.5, month="Jan-2026", *, without=0, changed=None):
    """Return the dump of the project with the results of one CPU model again, later and by a factor higher.

    The first rows are left out, and the number `changed` has another score.
    """
    header, *lines = gzip.decompress(next(project().raw[DATASET].iterdir()).read_bytes()).splitlines()
    names = [name.strip() for name in next(csv.reader([header.decode()]))]
    score, published, link = map(names.index, ("Base Result", "Published", "Disclosure"))

    def edit(line, by, **cells):
        (row,) = csv.reader([line.decode()])
        row[score] = f"{float(row[score]) * by:.3f}"
        row[published], row[link] = cells.get("month", row[published]), cells.get("link", row[link])
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(row)
        return text.getvalue().encode()

    if changed is not None:
        lines[changed] = edit(lines[changed], 1.01)
    again = [line for line in lines if b",Intel Xeon Gold 6148," in line]
    links = (f'<A HREF="/cpu2017/results/res2026q1/cpu2017-20251201-{n:05d}.html">HTML</A>' for n in range(len(again)))
    again = [edit(line, factor, month=month, link=link) for line, link in zip(again, links, strict=True)]
    return b"\n".join([header, *lines[without:], *again, b""])


@pytest.fixture
def results(tmp_path):
    """Folder of results with the champion of the project."""
    folder = tmp_path / "results"
    shutil.copytree(project().folder, folder / "champion" / DATASET)
    return folder


@pytest.fixture
def internet(tmp_path, monkeypatch, pytestconfig):
    """Server of a live dump, and in `tmp_path` the folder `conf` that names its address, at most 1 MB."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Loopback() as server:
        for kind in ("dataset", "source"):
            (tmp_path / "conf" / kind).mkdir(parents=True)
            text = (pytestconfig.rootpath / "conf" / kind / f"{DATASET}.yaml").read_text()
            official = "https://www.spec.org/cgi-bin/osgresults?conf=cpu2017;op=dump;format=csvdump"
            text = text.replace(official, server.url("/dump")).replace("256000000", "1000000")
            (tmp_path / "conf" / kind / f"{DATASET}.yaml").write_text(text)
        yield server


def update(results, *words, yes=True):
    return main(["update", *["--yes"] * yes, "--results", str(results), *map(str, words)])


def refuse(results, dump, match, capsys):
    """Check that a dump is refused in one line, and that no file changes."""
    path, before = results.parent / "dump.csv", file_digests(results)
    path.write_bytes(dump)
    capsys.readouterr()
    assert update(results, "--from", path) == 2
    error = capsys.readouterr().err
    assert match in error
    assert len(error.splitlines()) == 1
    assert file_digests(results) == before


def test_a_newer_dump_moves_answers_is_kept_and_is_not_learned_twice(results, tmp_path, capsys):
    old = perfcast.load_champion(results / "champion" / DATASET)
    path = tmp_path / "dump.csv.gz"
    path.write_bytes(gzip.compress(make_dump()))
    assert update(results, "--from", path) == 0
    output = capsys.readouterr().out
    new = perfcast.load_champion(results / "champion" / DATASET)
    count = len(new.calibrated.known.errors)
    assert f"new results: {count} ({len(old.reference_data.measured.frame)} before" in output
    assert "to 2026-01\nnew cpu models: 0\n" in output
    assert "answers moved by more than their interval:\n" in output
    assert ENTITY in output.partition("interval:\n")[2]
    assert (old.results_until < "2026", new.results_until) == (True, "2026-01")
    before, after = (each.predict(KNOWN, when="2026-06").machines[0].estimates[0] for each in (old, new))
    assert before.median * 1.05 < after.median < before.median * 1.6
    (folder,) = (results / "dumps" / DATASET).glob("*/")
    manifest = read_json(folder / "manifest.json")
    assert manifest["files"][0]["sha256"] == sha256(folder / "cpu2017-results.csv.gz") == sha256(path)
    assert (manifest["newest"], manifest["origin"], manifest["rows"]) == (
        "2026-01",
        str(path),
        len(old.reference_data.measured.frame) + count,
    )
    digests = file_digests(results)
    assert update(results, "--from", path) == 0
    assert "nothing new" in capsys.readouterr().out
    assert file_digests(results) == digests
    refuse(results, make_dump(1.4), f"0 of {manifest['rows']} are gone and {count} have another", capsys)
    shutil.rmtree(results / "champion")
    shutil.copytree(project().folder, results / "champion" / DATASET)
    assert update(results, "--from", path) == 0, "a champion that was made anew learns what is known"
    assert "new results: 0 (" in capsys.readouterr().out
    assert perfcast.load_champion(results / "champion" / DATASET).results_until == "2026-01"


@pytest.mark.parametrize("typed", [None, "\n", "no\n"])
def test_new_results_that_look_wrong_need_a_yes(typed, results, capsys, monkeypatch):
    path, before = results.parent / "dump.csv", file_digests(results)
    path.write_bytes(make_dump(10))
    stdin = io.StringIO(typed or "")
    stdin.isatty = lambda: typed is not None
    monkeypatch.setattr("sys.stdin", stdin)
    assert update(results, "--from", path, yes=False) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert re.search(r"(\d+) of \1 known set-ups lie outside the 99 % interval", error)
    assert "answers moved by more than their interval, where chance allows" in error
    assert "--yes" in error
    assert file_digests(results) == before


def test_a_typed_yes_learns_and_results_as_expected_are_not_asked_about(results, capsys, monkeypatch):
    path = results.parent / "dump.csv"
    for factor, typed in ((1.0, ""), (10, "y\n")):
        shutil.rmtree(results / "dumps", ignore_errors=True)
        shutil.rmtree(results / "champion")
        shutil.copytree(project().folder, results / "champion" / DATASET)
        path.write_bytes(make_dump(factor))
        stdin = io.StringIO(typed)
        stdin.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", stdin)
        assert update(results, "--from", path, yes=False) == 0
        assert ("[y/N]" in capsys.readouterr().out) == bool(typed)


def test_a_page_that_a_killed_update_did_not_write_is_written_next_time(results, capsys):
    path = results.parent / "dump.csv"
    path.write_bytes(make_dump())
    assert update(results, "--from", path) == 0
    page = results / "dumps" / DATASET / "forecasts.md"
    text = page.read_text()
    page.unlink()
    assert update(results, "--from", path) == 0
    assert "nothing new" in capsys.readouterr().out
    assert page.read_text() == text


def test_a_dump_of_blank_lines_ends(results, capsys, monkeypatch):
    monkeypatch.setattr("perfcast.utils.size_limits.DUMP_ROWS", 1000)
    header = make_dump().partition(b"\n")[0]
    refuse(results, header + b"\n" * 1002, "at most 1000 blank lines", capsys)


def test_dumps_that_are_no_successors_are_refused_and_change_nothing(results, capsys):
    dump = make_dump()
    refuse(results, make_dump(without=3), "have every earlier result, but 3 of", capsys)
    refuse(results, make_dump(changed=5), "are gone and 1 have another score, as cpu2017-", capsys)
    first, second = re.findall(rb"cpu2017-\d{8}-\d{5}(?=.html)", dump)[:2]
    swapped = re.sub(first + b"|" + second, lambda match: second if match[0] == first else first, dump)
    refuse(results, swapped, "0 of 4", capsys)
    header, _, rows = dump.partition(b"\n")
    refuse(results, header.replace(b"Base Result", b"Basis") + b"\n" + rows, "have the column 'Base Result'", capsys)
    refuse(results, b"<html>busy</html>", "must be a dump of spec_cpu2017", capsys)
    refuse(results, b"", "must be a dump of spec_cpu2017", capsys)
    refuse(results, dump + b"x,y\n" * 400, "are not, most as wrong_field_count", capsys)
    refuse(results, make_dump(month="Jan-2199"), "must have results of the past, but one is of 2199-01", capsys)
    refuse(results, gzip.compress(dump)[:-3000], "truncated or damaged", capsys)


def read_predictions(results):
    (path,) = (results / "dumps" / DATASET).glob(f"*/{PREDICTIONS}")
    return read_parquet(path)


def test_forecasts_are_those_of_before_whatever_the_new_scores_are(results, tmp_path, capsys):
    """A higher score of every new result moves no forecast, and puts all of them outside of their intervals."""
    folders, path = [results, tmp_path / "other"], tmp_path / "dump.csv"
    shutil.copytree(results, folders[1])
    made = []
    for folder, factor in zip(folders, (1.0, 4.0), strict=True):
        path.write_bytes(make_dump(factor))
        assert update(folder, "--from", path) == 0
        made.append(read_predictions(folder))
    output = capsys.readouterr().out
    pd.testing.assert_frame_equal(
        made[0][["row", "estimate", "low", "high"]], made[1][["row", "estimate", "low", "high"]]
    )
    near, far = (summarize_scores(each).iloc[0] for each in made)
    assert (near["mape"] < 15, near["coverage"] > 50) == (True, True)
    assert (far["mape"] > 60, far["coverage"]) == (True, 0)
    assert (
        near["results"]
        == len(made[0])
        == len(perfcast.load_champion(results / "champion" / DATASET).calibrated.known.errors)
    )
    assert f"{len(made[1])} of {len(made[1])} known set-ups lie outside the 99 % interval: a change of time" in output
    assert f"forecasts of {UNTIL}, results to 2026-01: {len(made[0])} results\n" in output
    assert f"\n  known cpu models: {len(made[0])} results of 1, MAPE " in output


def test_each_dump_has_a_section_of_the_page(results, tmp_path, capsys):
    path, page = tmp_path / "dump.csv", results / "dumps" / DATASET / "forecasts.md"
    first, second = make_dump(1.0), make_dump(1.1, month="Mar-2026").splitlines()[-4:]
    for dump in (first, first + b"\n".join([*(line.replace(b"-0000", b"-0900") for line in second), b""])):
        path.write_bytes(dump)
        assert update(results, "--from", path) == 0
    text = page.read_text()
    assert "| label | value |" in text and "| cpu vendor | " in text and "| compiler major minor | " in text
    assert f"{page}: forecasts" in capsys.readouterr().out
    assert re.findall("^## (.+)$", text, re.MULTILINE) == [
        f"Forecasts of {UNTIL}, results to 2026-01",
        "Forecasts of 2026-01, results to 2026-03",
    ]
    assert "| all | all | known | 4 | 1 |" in text.partition("results to 2026-03")[2]
    assert "| all | 2026-03 | known | 4 | 1 |" in text
    shutil.rmtree(results / "champion")
    shutil.copytree(project().folder, results / "champion" / DATASET)
    assert update(results, "--from", path) == 0, "a champion that was made anew learns the dump"
    assert page.read_text() == text, "what it would forecast now is no forecast"


def test_known_and_new_entities_are_apart_and_results_without_a_forecast_are_counted():
    predictions = pd.DataFrame(
        {
            "row": list("abcd"),
            "task": ["x", "x", "y", "y"],
            "entity": ["e", "f", "f", "g"],
            "month": "2026-01",
            "known": [True, False, False, False],
            "measured": 100.0,
            "estimate": [110.0, 100.0, 80.0, None],
            "low": [100.0, 90.0, 70.0, None],
            "high": [120.0, 110.0, 90.0, None],
            "agrees": [1.0, None, None, None],
        }
    )
    summary = summarize_scores(predictions).set_index(["task", "month", "known"])
    assert summary.loc[("", "", True)].tolist() == [1, 1, pytest.approx(10), pytest.approx(10), 100]
    assert summary.loc[("", "", False)].tolist() == [2, 1, pytest.approx(10), pytest.approx(10), 50]
    assert summary.loc[("y", "2026-01", False)].tolist() == [1, 1, pytest.approx(20), pytest.approx(20), 0]
    vendors = predictions.assign(**{f"{LABEL}cpu_vendor": ["A", "A", "B", "B"]})
    by_label = summarize_labels(vendors).set_index(["label", "value", "known"])
    assert by_label.loc[("cpu_vendor", "A", False)].tolist() == [1, 1, 0, 0, 100]
    assert by_label.loc[("cpu_vendor", "B", False)].tolist() == [1, 1, pytest.approx(20), pytest.approx(20), 0]
    assert summarize_labels(predictions).empty
    assert list(list_scores(predictions, "cpu model")) == [
        "new cpu models: 2 results of 1, MAPE 10.0 %, MedAPE 10.0 %, 50 % inside their 90 % intervals",
        "known cpu models: 1 results of 1, MAPE 10.0 %, MedAPE 10.0 %, 100 % inside their 90 % intervals",
        "1 of 4 new results have no forecast: nothing is known of their design",
    ]


def test_what_cannot_be_updated_is_refused_in_one_line(results, tmp_path, capsys):
    for words, match in (
        (["--from", tmp_path / "none.csv"], "--from must be a file"),
        (["--dataset", "host_gemm"], "must have a live dump"),
        (["--champion", results / "none"], "there must be a champion"),
        (["--champion", results / "champion" / DATASET / "about.json"], "must be a folder"),
    ):
        assert update(results, *words) == 2
        error = capsys.readouterr().err
        assert match in error
        assert len(error.splitlines()) == 1


def test_a_full_disk_leaves_the_champion_and_the_next_update_learns(results, tmp_path, monkeypatch, capsys):
    path, champion = tmp_path / "dump.csv", results / "champion"
    path.write_bytes(make_dump())
    before = file_digests(champion)
    with monkeypatch.context() as context:
        context.setattr("perfcast.experiment.rolling.record_digests", fail)
        assert update(results, "--from", path) == 2
    assert "the disk must have room" in capsys.readouterr().err
    assert file_digests(champion) == before
    assert update(results, "--from", path) == 0
    assert perfcast.load_champion(champion / DATASET).results_until == "2026-01"


def fail(*paths):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_official_address_gives_the_dump(results, internet, tmp_path, capsys):
    internet.pages["/dump"] = Page(make_dump(), announces_length=False)
    assert update(results, "--project", tmp_path) == 0
    assert "answers moved" in capsys.readouterr().out
    (folder,) = (results / "dumps" / DATASET).glob("*/")
    assert read_json(folder / "manifest.json")["origin"] == internet.url("/dump")


@pytest.mark.parametrize(
    ("page", "match"),
    [
        (Page(b"x" * 1_100_000), "announces 1100000 bytes, more than the 1000000 declared"),
        (Page(b"x" * 1_100_000, announces_length=False), "sends more than the 1000000 bytes declared"),
        (Page(b"x" * 9000, wait_between_chunks=0.2), "not complete after 1 s"),
        (Page(b"x", wait_before=3), "the server sent nothing for 0.5 s"),
        (Page(b"", status=404), "HTTP status 404"),
    ],
    ids=["announced", "larger", "slow", "silent", "absent"],
)
def test_an_address_without_the_dump_changes_nothing(page, match, results, internet, tmp_path):
    internet.pages["/dump"] = page
    before = file_digests(results)
    champion, limits = results / "champion" / DATASET, DownloadLimits(read=0.5, total=1, retries=0)
    with pytest.raises(UserError, match=match):
        list(update_champion(champion, DATASET, None, results=results, project=tmp_path, agree=bool, limits=limits))
    assert file_digests(results) == before
