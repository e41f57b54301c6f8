"""Rows per CPU-second that each neural predictor trains, with the hyperparameters of its full preset.

Run: python benchmarks/neural_throughput.py [name ...] [--rows 4096]
Data, thread and clock are those of benchmarks/ncpp_throughput.py. CPU-s is the time of training alone for one fit of
30,000 rows with the epochs of the full or of the quick preset. Encoding, the linear skip and one more fit for each
candidate are not included.
"""

from __future__ import annotations

import argparse
import pkgutil
import time
from pathlib import Path
from typing import Any

import yaml
from ncpp_throughput import generated

from perfcast.features.encoding.tokens import TokenEncoder, TokenSpec
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.training.lightning_modules import train
from perfcast.training.loop import reproducible

CONF = Path(__file__).parents[1] / "conf" / "predictor"
TABLE_ROWS = 30_000


def predictor_class(path: str) -> type[NeuralPredictor] | None:
    kind = pkgutil.resolve_name(path)
    return kind if issubclass(kind, NeuralPredictor) else None


def rows_per_second(predictor: NeuralPredictor, spec: TokenSpec, rows: TokenBatch) -> tuple[float, int]:
    predictor.set_params(epochs=1, min_steps=0)
    with reproducible(0):
        # The first steps pay for imports and memory, which are no part of the speed.
        train(predictor.build_network(spec, 1), rows.take(slice(0, 256)), None, predictor.training_config(), 0)
        network = predictor.build_network(spec, 1)
        start = time.process_time()
        train(network, rows, None, predictor.training_config(), 0)
        speed = len(rows) / (time.process_time() - start)
    return speed, sum(parameter.numel() for parameter in network.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=sorted(path.stem for path in CONF.glob("*.yaml")))
    parser.add_argument("--rows", type=int, default=4096)
    options = parser.parse_args()
    frame, columns, targets = generated(options.rows)
    encoder = TokenEncoder().fit(frame, columns)
    rows = TokenBatch.from_tokens(encoder.transform(frame), targets)
    presets = "".join(f"{name + ': rows/CPU-s':>18s} {'CPU-s':>6s}" for name in ("full", "quick"))
    print(f"{'predictor':16s} {'parameters':>10s}{presets}")
    for name in options.names:
        conf: dict[str, Any] = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
        kind = predictor_class(conf["_target_"])
        if kind is None:
            continue
        line = ""
        for params in ({**conf["params"], **conf["quick"]}, conf["params"]):
            epochs = kind(**params).epochs
            speed, parameters = rows_per_second(kind(**params), encoder.spec, rows)
            line = f"{speed:18.0f} {TABLE_ROWS * epochs / speed:6.0f}" + line
        print(f"{name:16s} {parameters:10,d}{line}", flush=True)


if __name__ == "__main__":
    main()
