"""The leaderboard: rows say how they were made, and a further run replaces its own alone."""

import importlib.util
import json
from pathlib import Path

import pytest
from generated_results import fake_table, write_runs

from perfcast.evaluation import evaluate, write_evaluation
from perfcast.schema.table_files import write_table
from perfcast.utils.errors import UserError

PROJECT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("leaderboard", PROJECT / "docs" / "_site" / "leaderboard.py")
leaderboard = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(leaderboard)
SPEC = {"preset": "full", "splits": ["random", "unseen_cpu"], "predictors": {"ridge": "lines", "nearest": "lookup"}}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    table = fake_table(rows=400, seed=0)
    name = table.dataset
    runs = write_runs(table, folder / "runs" / name, seed=1, errors={"nearest": 0.2, "ridge": 0.1})
    for number, run in enumerate(runs.values()):
        (run / "config.yaml").write_text("preset: full\nseeds: [0, 1]\n")
        (run / "record.json").write_text(json.dumps({"tags": {"code_digest": f"{number:016x}"}}))
    write_table(table, folder / "standard" / f"{name}.parquet")
    write_evaluation(evaluate(runs, table, resamples=20, seed=0), folder / "evaluation" / name)
    return folder


@pytest.fixture(scope="module")
def board(results):
    name = next((results / "evaluation").iterdir()).name
    return leaderboard.collect_leaderboard(results, name)


def test_rows_say_how_they_were_made(board):
    assert list(board.columns) == leaderboard.COLUMNS
    runs = board[board["predictor"] != leaderboard.NOISE_FLOOR]
    assert set(runs["preset"]) == {"full"}
    assert set(runs["seeds"]) == {"0 1"}
    assert runs["code_digest"].str.fullmatch(r"[0-9a-f]{16}").all()
    assert runs["code_digest"].nunique() == len(runs[["split", "predictor"]].drop_duplicates())
    assert (runs["low"] <= runs["high"]).all()


def test_a_second_run_replaces_its_rows_alone(board, tmp_path):
    path = tmp_path / "board.csv"
    count = leaderboard.update_leaderboard(path, board)
    first = path.read_bytes()
    assert leaderboard.update_leaderboard(path, board) == count
    assert path.read_bytes() == first
    quick = board[board["predictor"] == "ridge"].assign(preset="quick", value=99.0)
    assert leaderboard.update_leaderboard(path, quick) > count
    frame = leaderboard.read_leaderboard(path)
    assert set(frame.loc[frame["preset"] == "full", "predictor"]) == {"nearest", "ridge"}
    assert (frame.loc[frame["preset"] == "quick", "value"] == 99).all()
    with pytest.raises(UserError, match="one version of the dataset"):
        leaderboard.update_leaderboard(path, board.assign(dataset_version="0" * 12))


def test_a_run_of_fewer_seeds_replaces_none_of_more(board, tmp_path):
    path = tmp_path / "demo.csv"
    three = board[board["split"] == "random"].assign(seeds="0 1 2", value=1.0)
    leaderboard.update_leaderboard(path, three)
    leaderboard.update_leaderboard(path, board)
    read = leaderboard.read_leaderboard(path)
    assert set(read.loc[read["split"] == "random", "seeds"]) == {"0 1 2"}
    assert set(read["split"]) >= set(board["split"].dropna()), "its other runs are added"
    leaderboard.update_leaderboard(path, three.assign(value=2.0))
    assert set(leaderboard.read_leaderboard(path).query("split == 'random'")["value"]) == {2.0}


def test_headline_table_shows_the_best_in_bold_and_a_dash_for_what_was_not_run(board):
    lines = leaderboard.headline_table(board[board["split"] != "unseen_cpu"], SPEC).splitlines()
    assert lines[-1].startswith("Preset `full`, seeds 0, 1.")
    assert lines[2].startswith("| lines | **")
    assert lines[3].startswith("| lookup | ")
    assert "**" not in lines[3]
    assert all(line.endswith("| - |") for line in lines[2:4])


def test_a_further_column_of_a_headline_has_another_datasets_predictors_in_the_rows(board, tmp_path):
    unseen = board[board["split"] == "unseen_cpu"]
    leaderboard.update_leaderboard(tmp_path / "first.csv", board[board["split"] == "random"])
    leaderboard.update_leaderboard(tmp_path / "second.csv", unseen)
    further = {"next suite": {"dataset": "second", "split": "unseen_cpu", "predictors": {"nearest": "ridge"}}}
    spec = SPEC | {"dataset": "first", "splits": ["random", "next suite"], "further": further}
    lines = leaderboard.headline_table(leaderboard.read_headline(tmp_path, spec), spec).splitlines()
    error = unseen.query("predictor == 'nearest' and task == 'average' and metric == 'mape'")["value"].item()
    assert lines[0].endswith("| next suite |")
    assert f"| **{error:.1f} %** (" in lines[2]
    assert lines[3].endswith("| - |")


def test_a_scored_submission_has_a_row_and_its_own_seeds(board, tmp_path):
    leaderboard.update_leaderboard(tmp_path / "first.csv", board)
    peers = board[(board["predictor"] == "ridge") & (board["split"] == "random")].drop(columns=["preset", "backtests"])
    peers.assign(predictor="forest", value=1.0, seeds="0").to_csv(tmp_path / "peers.csv", index=False)
    spec = SPEC | {"dataset": "first", "peers": "peers.csv", "predictors": SPEC["predictors"] | {"forest": "a peer"}}
    lines = leaderboard.headline_table(leaderboard.read_headline(tmp_path, spec), spec).splitlines()
    assert lines[4].startswith("| a peer | **1.0 %** (")
    assert lines[4].endswith("| - |")


def test_the_caption_says_which_columns_have_fewer_seeds(board):
    fewer = board["split"] == "unseen_cpu"
    mixed = board.assign(seeds=board["seeds"].mask(fewer, "0"))
    lines = leaderboard.headline_table(mixed, SPEC).splitlines()
    assert "seed 0 (unseen CPUs)" in lines[-1]
    assert "seeds 0, 1 (similar machines)" in lines[-1]


def test_a_block_is_replaced_between_its_marks():
    text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
    assert leaderboard.replace_block(text, "x", "new") == "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n"
    with pytest.raises(UserError, match="block 'y'"):
        leaderboard.replace_block(text, "y", "new")


def test_readme_shows_the_tracked_leaderboard():
    rendered = leaderboard.render_readme(PROJECT, PROJECT / "results" / "leaderboard")
    assert rendered == (PROJECT / "README.md").read_text(), "run docs/_site/leaderboard.py"


def test_runs_of_another_version_of_their_split_leave_the_file(board, tmp_path):
    path = tmp_path / "board.csv"
    old = board[board["split"] == "random"].assign(split="few_shot_3", split_version=1)
    leaderboard.update_leaderboard(path, old)
    leaderboard.update_leaderboard(path, board)
    assert "few_shot_3" not in set(leaderboard.read_leaderboard(path)["split"])
    new = old.assign(split_version=2)
    leaderboard.update_leaderboard(path, new)
    assert set(leaderboard.read_leaderboard(path).query("split == 'few_shot_3'")["split_version"]) == {2}
