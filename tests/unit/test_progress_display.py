"""Display of a run: rules of Snakemake's plug-ins, lines in a pipe, a bar on a terminal, one line of a failed job."""

import io
import logging
import sys

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from snakemake_interface_logger_plugins.tests import MockOutputSettings, TestLogHandlerBase

from snakemake_logger_plugin_perfcast import LogHandler


class TestRulesOfPlugins(TestLogHandlerBase):
    __test__ = True

    def get_log_handler_cls(self):
        return LogHandler

    def get_log_handler_settings(self):
        return None


def handler(**options):
    common = MockOutputSettings()
    vars(common).update({"printshellcmds": False, **options})
    return LogHandler(common, None)


def tell(display, event, message="", level=logging.INFO, **fields):
    record = logging.LogRecord("snakemake", level, "", 1, message, (), None)
    vars(record).update(fields | ({"event": event} if event else {}))
    display.emit(record)


def start(display, job, rule, *wildcards, log=()):
    named = dict(enumerate(wildcards))
    tell(display, LogEvent.JOB_INFO, jobid=job, rule_name=rule, wildcards=named, log=[*map(str, log)])


def plan(display, **stats):
    tell(display, LogEvent.RUN_INFO, stats={**stats, "total": sum(stats.values())})


def finish(display, job, done, total):
    tell(display, LogEvent.JOB_FINISHED, job_id=job)
    tell(display, LogEvent.PROGRESS, done=done, total=total)


def test_snakemake_finds_it():
    assert "perfcast" in LoggerPluginRegistry().get_registered_plugins()


def test_a_thousand_jobs_are_few_lines_in_a_pipe(capsys):
    display = handler()
    plan(display, split=10, train=990)
    for job in range(1000):
        start(display, job, "split" if job < 10 else "train", f"d{job}")
        finish(display, job, job + 1, 1000)
    display.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 50
    assert lines[0] == "0 of 1000 jobs done: split d0"
    assert ": train d10" in lines[1]
    assert lines[-1] == "1000 of 1000 jobs done in 0 s"


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("a note\nperfcast pipeline train: must be b, but is c\n", "perfcast pipeline train: must be b, but is c"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'label'\n", "train d random: KeyError: 'label'"),
        ("", "train d random: failed without a message in its log"),
    ],
)
def test_failed_job_prints_its_one_line(tmp_path, capsys, log, shown):
    path = tmp_path / "job.log"
    path.write_text(log)
    display = handler()
    plan(display, train=2)
    start(display, 1, "train", "d", "random", log=[path])
    words = "RuleException:\nCalledProcessError in file x:\nCommand 'y --json {}' returned non-zero exit status 2."
    tell(display, LogEvent.ERROR, words, logging.ERROR)
    tell(display, LogEvent.JOB_ERROR, "Error in rule", logging.ERROR, jobid=1, rule_name="train", log=[str(path)])
    tell(display, None, "Exiting because a job execution failed. Look above", logging.ERROR)
    display.close()
    assert capsys.readouterr().err.splitlines()[1:] == [
        shown,
        f"0 of 2 jobs done in 0 s, 1 failed; finished jobs are kept, messages are in {path}",
    ]


@pytest.fixture
def clock(monkeypatch):
    """The time of the display, in a list."""
    now = [0.0]
    monkeypatch.setattr("snakemake_logger_plugin_perfcast.time.monotonic", lambda: now[0])
    return now


def test_time_left_counts_a_job_by_its_pinned_seconds(capsys, monkeypatch, clock):
    pinned = {"train d random mlp": 300.0, "train d random ridge": 60.0}
    monkeypatch.setattr("snakemake_logger_plugin_perfcast.read_pinned", lambda: pinned)
    display = handler()
    plan(display, train=2, all=1)
    tell(display, None, "jobs are planned", planned=[*pinned, "all"], results="results")
    start(display, 0, "train", "d", "random", "mlp")
    clock[0] = 300.0
    finish(display, 0, 1, 3)
    start(display, 1, "train", "d", "random", "ridge")
    assert capsys.readouterr().err.splitlines()[-1] == "1 of 3 jobs done, about 61 s left: train d random ridge"


def test_the_first_finished_split_of_a_dataset_is_a_table(tmp_path, capsys):
    splits = ("random", "unseen_cpu")
    titles = [f"train d {split} {name}" for split in splits for name in ("ridge", "mlp")]
    display = handler()
    plan(display, train=4)
    tell(display, None, "jobs are planned", planned=titles, results=str(tmp_path))
    shown = []
    for job, title in enumerate(titles):
        start(display, job, *title.split())
        record = tmp_path / "runs" / "/".join(title.split()[1:]) / "record.json"
        record.parent.mkdir(parents=True)
        record.write_text(f'{{"metrics": {{"mape": {9.5 - job}, "medape": 2.0}}}}')
        capsys.readouterr()
        finish(display, job, job + 1, 4)
        shown.append(capsys.readouterr().err.splitlines())
    assert shown == [
        [],
        [
            "d random: MAPE / MedAPE of all test rows in %, before the leakage checks",
            "  mlp     8.50 /  2.00",
            "  ridge   9.50 /  2.00",
        ],
        [],
        [],
    ]


def test_notes_of_jobs_and_errors_without_a_job_are_shown(tmp_path, capsys):
    path = tmp_path / "available.log"
    path.write_text("dataset a is left out: missing b\nb: 1 file\n")
    display = handler()
    tell(display, None, "Nothing to be done")
    tell(display, LogEvent.ERROR, "MissingInputException in rule x", logging.ERROR)
    plan(display, available=1)
    tell(display, None, "Select jobs to execute...")
    start(display, 0, "available", log=[path])
    finish(display, 0, 1, 1)
    assert capsys.readouterr().err.splitlines() == [
        "Nothing to be done",
        "MissingInputException in rule x",
        "0 of 1 jobs done: available",
        "dataset a is left out: missing b",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_has_one_line_that_ends_with_the_run(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    display = handler()
    plan(display, train=2)
    start(display, 0, "train", "d", "ridge")
    finish(display, 0, 1, 2)
    start(display, 1, "train", "d", "mlp")
    finish(display, 1, 2, 2)
    display.close()
    shown = terminal.getvalue()
    assert "1/2" in shown
    assert "train d mlp, about" in shown
    assert shown.rstrip().endswith("2 of 2 jobs done in 0 s")


@pytest.mark.parametrize("option", ["dryrun", "printshellcmds", "verbose", "debug_dag"])
def test_snakemake_speaks_itself_where_it_is_asked(capsys, option):
    display = handler(**{option: True})
    assert not display.writes_to_stream
    plan(display, train=1)
    start(display, 0, "train")
    display.close()
    assert capsys.readouterr().err == ""
