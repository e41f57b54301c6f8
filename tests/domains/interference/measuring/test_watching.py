"""Watching: the prediction is that of the pipeline, from samples of a machine that the test writes."""

import json

import numpy as np
import pandas as pd
import pytest

from perfcast.cli.main import main
from perfcast.domains.interference.datasets.host_interference import build
from perfcast.domains.interference.features import resource_shares, window_statistics
from perfcast.domains.interference.measuring import watching
from perfcast.domains.interference.measuring.metrics import Sampler
from perfcast.domains.interference.measuring.watching import choose_groups, predict_degradation, watch
from perfcast.domains.interference.predictors.sequence_networks import TemporalConvolution
from perfcast.domains.interference.predictors.share_laws import SchedstatPredictor
from perfcast.domains.interference.predictors.share_trees import ResourceSharesTreesPredictor
from perfcast.domains.interference.sources.host_interference import TABLE, metric_names
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.experiment.uncertainty_fit import fit_in_domain
from perfcast.inference.champion import load_champion, save_champion
from perfcast.schema.table import Role
from perfcast.uncertainty.conformal import ConformalCalibration, UncertaintyModel
from perfcast.uncertainty.levels import outputs_of
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("interference")
    generated.write(path, rows=500, seed=4)
    return path


@pytest.fixture(scope="module")
def standard(folder):
    return build({"host_interference": folder}, {}).table


@pytest.fixture(scope="module")
def table(standard):
    return window_statistics.derive(resource_shares.derive(standard))


def fitted(kind, table, **arguments):
    predictor = kind(**arguments)
    inputs = table.frame[[column.name for column in table.columns if column.role is not Role.TARGET]]
    return predictor.fit(inputs, table.frame[["share"]], columns=table.columns)


@pytest.fixture(scope="module")
def trees(table):
    return fitted(ResourceSharesTreesPredictor, table, n_estimators=20)


@pytest.fixture(scope="module")
def make_champion(standard, table, folder, tmp_path_factory):
    """Return a function that saves a champion in a folder of results."""

    def make(predictor, calibrated=None):
        results = tmp_path_factory.mktemp("results")
        features = ["resource_shares", "window_statistics"]
        about = {"dataset": "host_interference", "predictor": "x", "preset": "quick", "features": features}
        out, raw = results / "champion" / "host_interference", {"host_interference": folder}
        save_champion(out, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
        return results

    return make


@pytest.fixture(scope="module")
def champion(make_champion, trees):
    return load(make_champion(trees))


def load(results):
    return load_champion(results / "champion" / "host_interference", "host_interference")


@pytest.fixture(scope="module")
def uncertainty(table):
    distances = (in_domain := fit_in_domain(table, np.ones(len(table.frame), dtype=bool))).distances(table.frame)
    residuals = np.random.default_rng(0).normal(0, 0.2, len(distances)) * (1 + distances.sum(axis=1).to_numpy())
    outputs = outputs_of(table.frame["quantity"], "share")
    calibration = ConformalCalibration().fit(residuals, outputs, np.zeros(len(residuals)), distances)
    return UncertaintyModel(in_domain, calibration)


def last_seconds(table, folder):
    """Return a row of one victim, and the metrics of the seconds up to it."""
    seconds = pd.read_parquet(folder / TABLE)
    throughput = table.frame[table.frame["quantity"] == "throughput"]
    contiguous = throughput[(throughput["second"] > 9) & (throughput["neighbors"] > 0)]
    row = contiguous.loc[contiguous["second"].idxmax()]
    last = seconds.iloc[int(row["source_line"]) - 1]
    same = seconds[(seconds["run"] == last["run"]) & (seconds["tenant"] == last["tenant"])].set_index("second")
    metrics = metric_names(seconds)
    numbers = range(int(row["second"]) - 9, int(row["second"]) + 1)
    return row, [same.loc[n, metrics].dropna().to_dict() if n in same.index else {} for n in numbers]


@pytest.mark.parametrize("kind", ["trees", "network"])
def test_windows_give_the_prediction_and_the_interval_of_the_table(
    kind, table, folder, trees, uncertainty, make_champion
):
    predictor = trees if kind == "trees" else fitted(TemporalConvolution, table, epochs=1, min_steps=4)
    row, seconds = last_seconds(table, folder)
    cores, neighbors = [row["cores"]] * 2, [row["neighbors"]] * 2
    windows = {"victim": seconds, "other": [{}]}
    answer = predict_degradation(load(make_champion(predictor, uncertainty)), windows, cores, neighbors)
    assert list(answer.index) == ["victim", "other"]
    share = predictor.predict(table.frame.loc[[row.name]]).iloc[0, 0]
    victim = answer.loc["victim"]
    assert 1 - victim["throughput"] == pytest.approx(share, abs=1e-5)
    assert np.isfinite(answer.to_numpy()).all()
    unknown = table.frame.loc[[row.name]].assign(victim="running")
    half = uncertainty.intervals(unknown, outputs_of(unknown["quantity"], "share"))["below"].iloc[0]
    assert 1 - victim["throughput_low"] == pytest.approx(min(share * np.exp(half), max(share, 1)), rel=1e-4)
    assert 1 - victim["throughput_high"] == pytest.approx(share * np.exp(-half), rel=1e-4)


class Machine:
    """A machine of files: two control groups that share a core, whose counters grow with the time."""

    def __init__(self, root):
        self.root, self.now = root, 100.0
        self.tree = root / "cgroup"
        for number, name in ((11, "web"), (12, "batch")):
            (root / "cgroup" / name).mkdir(parents=True)
            (root / "cgroup" / name / "cgroup.procs").write_text(f"{number}\n")
            (root / "proc" / str(number)).mkdir(parents=True)
            (root / "proc" / str(number) / "comm").write_text(f"{name}\n")
        (root / "cgroup" / "cgroup.procs").write_text("1\n")
        (root / "cgroup" / "batch" / "cpu.max").write_text("50000 100000\n")
        self.sleep(0)

    def sleep(self, seconds):
        self.now += seconds
        used = self.now - 100
        for name, share in (("web", 0.25), ("batch", 0.75)):
            number = {"web": 11, "batch": 12}[name]
            (self.root / "cgroup" / name / "cpu.stat").write_text(f"usage_usec {round(1e6 * share * used)}\n")
            schedstat = f"{round(1e9 * share * used)} {round(1e9 * (1 - share) * used)} 1\n"
            (self.root / "proc" / str(number) / "schedstat").write_text(schedstat)
            (self.root / "proc" / str(number) / "stat").write_text(f"{number} ({name}) S " + " ".join(["0"] * 50))
        (self.root / "proc" / "stat").write_text(f"cpu {round(100 * used)} 0 0 0 0 0 0 0 0 0\nctxt {round(used)}\n")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda number: {4, 0, 1})
    return Machine(tmp_path)


def test_groups_with_processes_are_found_with_cores_and_quota(machine):
    machine.sleep(10)
    groups = choose_groups(machine.tree)
    assert [(entry.name, entry.cpus, entry.cores) for entry in groups] == [
        ("/batch", (0, 1, 4), 0.5),
        ("/web", (0, 1, 4), 3.0),
    ]


@pytest.mark.parametrize(("wanted", "words"), [(["/none"], "no /none"), ([], "systemd-run")])
def test_an_absent_group_is_one_line(machine, wanted, words):
    with pytest.raises(UserError, match=words):
        choose_groups(machine.tree if wanted else None, wanted)


def test_every_second_has_the_degradation_of_busy_groups(machine, table, make_champion):
    groups = choose_groups(machine.tree)
    sampler = Sampler(machine.root, clock=lambda: machine.now)
    times = {"clock": lambda: machine.now, "sleep": machine.sleep, "cpu_clock": lambda: 0.0}
    seconds = watch(groups, load(make_champion(fitted(SchedstatPredictor, table))), sampler, **times)
    observations = [next(seconds) for _ in range(3)]
    assert [round(entry.seconds) for entry in observations] == [1, 2, 3]
    last = observations[-1]
    assert last.groups["cores"].to_dict() == pytest.approx({"/batch": 0.75, "/web": 0.25})
    # web waits for three quarters of its time, batch for a quarter
    assert last.groups.loc["/web", "throughput"] > last.groups.loc["/batch", "throughput"] + 0.2
    content = json.loads(json.dumps(last.to_json()))
    assert set(content["groups"]["/web"]) == {"cores", "throughput", "latency_p99"}
    assert [entry.age for entry in observations] == [0, 0, 0]
    assert [line.split()[0] for line in last.to_text().splitlines()] == ["cores", "/web", "/batch"]


@pytest.mark.parametrize(("cost", "every"), [(0.01, 1), (0.06, 3)])
def test_predictions_are_made_as_often_as_two_percent_of_a_core_permit(machine, champion, cost, every, monkeypatch):
    groups, used, made = choose_groups(machine.tree), [0.0], []

    def expensive(*args):
        made.append(machine.now)
        used[0] += cost
        return predict_degradation(*args)

    monkeypatch.setattr(watching, "predict_degradation", expensive)
    times = {"clock": lambda: machine.now, "sleep": machine.sleep, "cpu_clock": lambda: used[0]}
    seconds = watch(groups, champion, Sampler(machine.root, clock=times["clock"]), **times)
    observations = [next(seconds) for _ in range(31)]
    spent = sum(entry.cost for entry in observations[1:])
    assert spent / 30 <= 0.021
    assert len(made) == pytest.approx(30 / every, abs=2)
    assert max(entry.age for entry in observations) == pytest.approx(every - 1, abs=1)
    assert all(len(entry.groups) for entry in observations)


def test_without_a_champion_there_is_one_line_with_the_remedy(tmp_path, capsys):
    assert main(["watch", "--once", "--results", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "there must be a champion" in error and "host_interference has none" in error


def test_the_command_answers_once_about_the_groups_of_this_machine(trees, make_champion, capsys, monkeypatch, machine):
    monkeypatch.setattr("perfcast.domains.interference.measuring.groups.find_tree", lambda mounts: machine.tree)
    assert main(["watch", "--once", "--json", "--groups", "/web", "--results", str(make_champion(trees))]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert set(json.loads(line)) == {"seconds", "age", "cost", "groups"}
