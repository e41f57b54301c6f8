"""Champions whose digests fit and whose content no training gives: refused when loaded, and nothing of it runs."""

from __future__ import annotations

import io
import json
import pickle
import resource
import shutil
import signal
import zipfile
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from champion_project import FEATURES, project
from hostile_input import call, one_line, refused

from perfcast.experiment.champion import fit_all_rows
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import save_champion
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.boosting.xgboost import XgboostPredictor
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.trees import RandomForest
from perfcast.schema.table_files import SCHEMA_KEY, SCHEMA_VERSION
from perfcast.utils.result_digests import FOLDER_RECORD, record_digests

MACHINE = ["--processor", "Xeon Gold 6148", "--chips", "2"]
SECONDS, MEGABYTES = 60, 600
LINEAR, CALIBRATION, PREDICTOR = "model/linear.json", "intervals/calibration.json", "model/predictor.json"
GROUP = "intervals/memory.npz"
FOREST = "model/model_0_0.parquet"


@cache
def champion_of(kind: type[Predictor]) -> Path:
    """Return the folder of a champion that is a small model of a class of predictors."""
    folder, made = Path(mkdtemp(prefix="perfcast-crafted-")) / "champion", project()
    folder.mkdir()
    table = build_features("spec_cpu2017", made.standard.frame, made.standard.columns, FEATURES)
    predictor = fit_all_rows(table, lambda seed: kind(n_estimators=3), 0, None)
    about = {"dataset": "spec_cpu2017", "predictor": "trees", "preset": "quick", "features": list(FEATURES)}
    save_champion(folder, predictor, None, standard=made.standard, table=table, raw=made.raw, about=about)
    return folder


def signed(champion: Path) -> None:
    """Write all digests anew."""
    record_digests(champion / "model")
    record_digests(champion)


def change_json(name, change):
    def craft(champion):
        content = json.loads((champion / name).read_text())
        change(content)
        (champion / name).write_text(json.dumps(content))

    return craft


def weight(value):
    def change(state):
        for weights in state["weights"]["base_score"].values():
            weights[0] = value

    return change_json(LINEAR, change)


def text(name, old, new):
    def craft(champion):
        content = (champion / name).read_text()
        assert old in content
        (champion / name).write_text(content.replace(old, new, 1))

    return craft


def calibration(**values):
    return change_json(CALIBRATION, lambda state: state.update(values))


def quantiles(change):
    def craft(state):
        state["quantiles"] = {output: change(values) for output, values in state["quantiles"].items()}

    return change_json(CALIBRATION, craft)


def arrays(name, **change):
    def craft(champion):
        with np.load(champion / name) as file:
            content = dict(file)
        np.savez(champion / name, **{key: change.get(key, lambda x: x)(value) for key, value in content.items()})

    return craft


def first_infinite(array):
    array.flat[0] = np.inf
    return array


def packed_zeros(champion):
    """Write 2.4 GB of zeros as references, in a file of some megabytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (30_000_000, 10)})
    with np.load(champion / GROUP) as file:
        scales = io.BytesIO()
        np.save(scales, file["scales"])
    with zipfile.ZipFile(champion / GROUP, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("scales.npy", scales.getvalue())
        with archive.open("references.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(2400):
                member.write(bytes(1_000_000))


def nodes(**change):
    def craft(champion):
        table = pq.read_table(champion / FOREST)
        columns = {name: table[name].to_pylist() for name in table.column_names}
        leaf = [number for number, feature in enumerate(columns["feature"]) if feature < 0][-1]
        for name, value in change.items():
            columns[name][leaf if name == "value" else 0] = value
        arrays = [pa.array(columns[name], table.schema.field(name).type) for name in table.column_names]
        pq.write_table(pa.table(arrays, table.column_names), champion / FOREST)

    return craft


def nodes_without(*, column=None, rows=None):
    def craft(champion):
        table = pq.read_table(champion / FOREST)
        table = table.drop_columns([column]) if column else table.slice(0, rows)
        pq.write_table(table, champion / FOREST)

    return craft


def replace(name, content, champion):
    (champion / name).write_bytes(content)


def about(name, value):
    return change_json(name, lambda state: state.update(value))


CLASSES = (
    "os:system",
    "perfcast.predictors.predictor:load_predictor",
    "perfcast.predictors.linear:np",
    "perfcast.predictors.nope:Nope",
)


def _describe(dataset: str, *files: str) -> bytes:
    """Return the description of a champion of this schema version."""
    about = {SCHEMA_KEY: SCHEMA_VERSION, "dataset": dataset, "files": dict.fromkeys(files, "0")}
    return json.dumps(about).encode()


ABOUTS = {
    "nothing": b"",
    "a list": b"[]",
    "another dataset": _describe("host_gemm"),
    "files elsewhere": _describe("spec_cpu2017", "../../../etc/passwd"),
}
CRAFTED = {
    **{f"class {name!r}": about(PREDICTOR, {"class": name, "params": {}}) for name in CLASSES},
    **{f"description: {name}": partial(replace, "about.json", content) for name, content in ABOUTS.items()},
    "constant NaN": weight(float("nan")),
    "constant 1e308": weight(1e308),
    "calibration base -1": calibration(base=-1.0),
    "calibration weight negative": change_json(CALIBRATION, lambda s: s["weights"].update({"few results": -9.0})),
    "quantiles falling": quantiles(lambda values: values[::-1]),
    "quantiles of no output": calibration(quantiles={}),
    "references of other columns": arrays(GROUP, references=lambda x: x[:, :1]),
    "references infinite": arrays(GROUP, references=first_infinite),
    "references of 2.4 GB packed": packed_zeros,
    "targets no list": about(PREDICTOR, {"targets": 3}),
    "feature group elsewhere": about("about.json", {"features": ["../../x"]}),
}
FORESTS = {
    "feature out of range": nodes(feature=10**6),
    "feature negative": nodes(feature=-7),
    "threshold NaN": nodes(threshold=np.nan),
    "leaf missing": nodes(value=None),
    "leaf 1e308": nodes(value=1e308),
    "half of the nodes": nodes_without(rows=9),
    "no leaves": nodes_without(column="value"),
}


@pytest.fixture
def bounded():
    """Fail after a time, and on memory; an endless loop ends by the alarm."""

    def stop(*_):
        raise AssertionError(f"not refused in {SECONDS} s")

    before, handler = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024


def expect_refusal(champion, craft, capsys):
    craft(champion)
    signed(champion)
    status, output = call(["predict", *MACHINE, "--champion", champion], capsys)
    assert status == 2, output
    one_line(output)


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_champion_is_refused_when_loaded(tmp_path, capsys, bounded, name):
    shutil.copytree(project().folder, tmp_path / "champion")
    expect_refusal(tmp_path / "champion", CRAFTED[name], capsys)


@pytest.mark.parametrize("name", FORESTS)
def test_crafted_forest_is_refused_when_loaded(tmp_path, capsys, bounded, name):
    shutil.copytree(champion_of(RandomForest), tmp_path / "champion")
    expect_refusal(tmp_path / "champion", FORESTS[name], capsys)


def test_signed_copies_without_a_change_predict(tmp_path, capsys):
    folders = [champion_of(kind) for kind in (RandomForest, LightgbmPredictor, XgboostPredictor)]
    for number, folder in enumerate((project().folder, *folders)):
        shutil.copytree(folder, tmp_path / str(number))
        signed(tmp_path / str(number))
        assert call(["predict", *MACHINE, "--champion", tmp_path / str(number)], capsys)[0] == 0


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("content", ["a pickle", "a npy of objects"])
def test_nothing_that_is_planted_in_a_file_is_executed(tmp_path, capsys, content):
    champion, marker, out = tmp_path / "champion", tmp_path / "executed", tmp_path / "out"
    shutil.copytree(project().folder, champion)
    pickled = pickle.dumps(Planted(marker))
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    contents = {
        "a pickle": pickled,
        "a npy of objects": b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + pickled,
    }
    for path in [path for path in sorted(champion.rglob("*")) if path.is_file() and path.name != FOLDER_RECORD]:
        whole = path.read_bytes()
        path.write_bytes(contents[content])
        signed(champion)
        refused(["predict", *MACHINE, "--champion", champion, "--out", out / "x.csv"], capsys, out=out)
        assert not marker.exists(), path
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "command", [["rank", "machines.csv"], ["serve", "--port", "0"], ["what-if", "--vary", "chips"]]
)
def test_every_command_refuses_a_crafted_champion(tmp_path, monkeypatch, capsys, bounded, command):
    monkeypatch.chdir(tmp_path)
    Path("machines.csv").write_text("name,processor,chips\na,Xeon Gold 6148,2\n")
    shutil.copytree(champion_of(RandomForest), "champion")
    nodes(feature=-7)(Path("champion"))
    signed(Path("champion"))
    refused([*command, "--champion", "champion"], capsys)
