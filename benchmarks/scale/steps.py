"""Steps that `benchmarks/scale` measures beside the data commands, one process each; prints JSON.

Run by `__main__.py`: python benchmarks/scale/steps.py STEP FOLDER [NAME]. The JSON has the times of parts of the step.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

DATASET, SPLIT = "spec_cpu2017", "forward_2023"
BATCHES, BATCH_ROWS = 40, 256
PREDICTIONS = 5
FEATURES = ("processor", "memory", "system", "workload", "setup_labels")


class Watch:
    """Names times of parts of a step. Units: CPU seconds of this process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[name] = time.process_time() - start


def generate(folder: Path, rows: str, watch: Watch) -> None:
    """Write the generated dump, and the conf with its checksum."""
    import shutil

    import yaml
    from tiled_dump import write_tiled

    from perfcast.utils.io import sha256

    project, mirror = folder / "project", folder / "mirror"
    shutil.copytree(Path(__file__).parents[2] / "conf", project / "conf", dirs_exist_ok=True)
    write_tiled(mirror / DATASET, rows=int(rows), seed=0)
    (file,) = (mirror / DATASET).iterdir()
    path = project / "conf" / "source" / f"{DATASET}.yaml"
    conf = yaml.safe_load(path.read_text())
    (known,) = conf["files"]
    conf.pop("packed")
    known.pop("bytes")
    known |= {"sha256": sha256(file), "max_bytes": file.stat().st_size, "mirror": f"{DATASET}/{file.name}"}
    path.write_text(yaml.safe_dump({**conf, "files": [known]}, sort_keys=False))


def train(folder: Path, name: str, watch: Watch) -> None:
    """Encode the training rows, and learn from some mini-batches of them."""
    import torch

    from perfcast.features.encoding.tokens import TokenEncoder
    from perfcast.nn.embedding import TokenBatch
    from perfcast.predictors.neural.attention import NCPP
    from perfcast.schema.table import Role, Tag
    from perfcast.training.lightning_modules import masked_huber
    from perfcast.training.loop import BatchLoader, reproducible

    with watch("read"):
        table, rows = _training(folder)
    with watch("encode"):
        X = table.frame.loc[rows]
        logs = np.log(X[table.select(role=Role.TARGET)].to_numpy())
        columns = [c for c in table.columns if c.role is Role.FEATURE or Tag.TASK in c.tags]
        encoder = TokenEncoder().fit(X, columns)
        encoded = TokenBatch.from_tokens(encoder.transform(X), (logs - logs.mean()) / logs.std())
        del table, X
    predictor = NCPP()
    with reproducible(0):
        network = predictor.build_network(encoder.spec, 1)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
        with watch(f"{BATCHES} mini-batches"):
            batches = iter(BatchLoader(encoded, BATCH_ROWS, shuffle_seed=0))
            for _, batch in zip(range(BATCHES), batches, strict=False):
                optimizer.zero_grad()
                masked_huber(network(batch), batch.targets, 0.5).backward()
                optimizer.step()


def fit(folder: Path, name: str, watch: Watch) -> None:
    """Fit a predictor under its quick preset."""
    from perfcast.config.conf_files import read_yaml
    from perfcast.config.predictor_conf import read_predictor
    from perfcast.experiment.fitting import fit_rows as fitted
    from perfcast.experiment.selection import predictor_factory

    conf = folder / "project" / "conf"
    machine = read_yaml(conf / "trainer" / "default.yaml")
    declared = read_predictor(conf, name)
    make = predictor_factory(declared, declared.arguments("quick"), machine)
    with watch("read"):
        table, rows = _training(folder)
    with watch("fit"):
        predictor = fitted(make(0), table, rows, None)
    predictor.save(folder / "models" / name)


def predict(folder: Path, name: str, watch: Watch) -> None:
    """Predict the test rows with a fitted predictor."""
    from perfcast.experiment.fitting import predict_rows
    from perfcast.predictors.predictor import load_predictor

    with watch("read"):
        predictor = load_predictor(folder / "models" / name)
        table, part = _table(folder)
    with watch("predict"):
        predicted = predict_rows(predictor, table, part == "test", 0, 0)
    assert np.isfinite(predicted["predicted"]).all()


def champion(folder: Path, name: str, watch: Watch) -> None:
    """Make the champion for single predictions."""
    from perfcast.domains.servers.predictors.analytical import AnalyticalPredictor
    from perfcast.experiment.champion import fit_all_rows
    from perfcast.experiment.uncertainty_fit import fit_uncertainty
    from perfcast.inference.champion_files import save_champion
    from perfcast.schema.table_files import read_table

    def make(seed: int) -> AnalyticalPredictor:
        return AnalyticalPredictor(alphas=[3e-4], decay_years=[3.0])

    with watch("read"):
        table = read_table(folder / "features.parquet")
    with watch("fit"):
        predictor = fit_all_rows(table, make, 0, 0.3)
    with watch("calibrate"):
        calibrated = fit_uncertainty(table, make, 0, 0.3, 1)
    about = {"dataset": DATASET, "predictor": name, "preset": "quick", "features": list(FEATURES)}
    raw = {DATASET: folder / "raw" / DATASET}
    with watch("save"):
        standard = read_table(folder / "standard.parquet")
        save_champion(folder / "champion", predictor, calibrated, standard=standard, table=table, raw=raw, about=about)


def predict_machine(folder: Path, name: str, watch: Watch) -> None:
    """Load the champion, then predict machines and find similar ones one at a time."""
    from perfcast.decisions.nearest_machines import find_nearest_machines
    from perfcast.domains.servers.testing.generated_rows import CPU_MODELS
    from perfcast.inference import MachineEntry, PredictOptions, Suites, load_champion, parse_machines, predict_machines

    with watch("load"):
        loaded = load_champion(folder / "champion", DATASET)
    suites = Suites(loaded)

    def machine(number: int):  # type: ignore[no-untyped-def]
        part = CPU_MODELS[number % len(CPU_MODELS)].name
        values = {"processor": part, "chips": 1, "tdp": 100 + number / 10}
        return [MachineEntry(1, "the machine", values)]

    with watch("first prediction"):
        predict_machines(machine(0), suites, PredictOptions())
    with watch(f"{PREDICTIONS} predictions"):
        for number in range(1, PREDICTIONS + 1):
            predict_machines(machine(number), suites, PredictOptions(neighbors=0))
    with watch(f"{PREDICTIONS} explained, with neighbors"):
        for number in range(1, PREDICTIONS + 1):
            predict_machines(machine(100 + number), suites, PredictOptions())
    with watch(f"{PREDICTIONS} similar"):
        for number in range(1, PREDICTIONS + 1):
            find_nearest_machines(parse_machines(machine(200 + number), loaded), loaded)


def _table(folder: Path):  # type: ignore[no-untyped-def]
    import pandas as pd

    from perfcast.schema.table_files import read_table

    folds = pd.read_parquet(folder / "splits" / f"{SPLIT}.parquet", columns=["fold_0"])
    return read_table(folder / "features.parquet"), folds["fold_0"].to_numpy()


def _training(folder: Path):  # type: ignore[no-untyped-def]
    from perfcast.experiment.fitting import training_rows

    table, part = _table(folder)
    return table, training_rows(table, part, 0.3)


def main() -> None:
    steps = {step.__name__: step for step in (generate, train, fit, predict, champion, predict_machine)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=steps)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?", default="")
    options = parser.parse_args()
    watch = Watch()
    steps[options.step](options.folder, options.name, watch)
    print(json.dumps(watch.seconds))


if __name__ == "__main__":
    main()
