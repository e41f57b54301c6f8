"""The table of planned jobs: minutes of the last run and the cause, from the text of a dry run."""

from perfcast.code_hash import code_digest, code_parts
from perfcast.ops.planned_jobs import explain_reason, parse_plan, tabulate_plan

MODULE = "perfcast.evaluation.headline_metrics"
PARTS = code_parts(MODULE)
EDITED = {**PARTS, MODULE: "00" * 32}
PARAMS = "Params have changed since last execution: Union of exclusive params before and now across all output:"


def job(rule, reason, wildcards="dataset=servers"):
    return (
        f"[Mon Jan  1 00:00:00 2024]\nlocalrule {rule}:\n    input: a, b\n    output: c\n    jobid: 1\n"
        f"    benchmark: results/benchmarks/{rule}.tsv\n    reason: {reason}\n    wildcards: {wildcards}\n\n"
    )


def explain(reason, code=None):
    (planned,) = parse_plan(job("evaluate", reason))
    return explain_reason(planned, code or {})


def test_every_cause_has_its_words():
    assert explain(f"{PARAMS} before: 0.9 now: 0.8 ") == "0.9 -> 0.8"
    assert explain("Missing output files: results/a, results/b") == "missing: results/a and 1 more"
    assert explain("Input files updated by another job: results/a") == "results before it"
    assert explain("Forced execution") == "forced"
    assert explain(f"{PARAMS} before: {'x' * 50} now: {'y' * 50}") == "settings of servers"


def test_a_changed_digest_of_code_names_the_changed_file():
    reason = f"{PARAMS} before: '0123456789abcdef' now: '{code_digest(MODULE)}'"
    assert explain(reason, {"0123456789abcdef": EDITED}) == "perfcast/evaluation/headline_metrics.py"
    assert explain(reason) == "configuration or code"


def test_jobs_of_one_rule_and_cause_are_one_line_and_gathering_is_no_job():
    text = job("train", "Forced execution") * 2 + job("report", "Forced execution") + job("all", "Forced execution")
    seconds = {"train": 90.0, "report": None}
    table = tabulate_plan(parse_plan(text), lambda path: seconds[path.stem], {}).splitlines()
    assert [line.split() for line in table] == [
        ["rule", "jobs", "minutes", "cause"],
        ["train", "2", "3.0", "forced"],
        ["report", "1", "?", "forced"],
        ["all", "3", ">", "3.0"],
    ]
