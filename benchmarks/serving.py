"""Speed of predictions beside that of an earlier commit: commands, batches, the server and the predictor.

Run: python benchmarks/serving.py [--results results] [--before FOLDER] [--clients 20] [--seconds 10]
FOLDER is a checkout of the earlier commit, measured in turn with the present code; without it the values of the earlier
commit stay as they were. Writes results/performance/serving.csv: measure, before, now, goal, unit, reference_seconds.
Values in `s CPU` and `ms CPU` are processor time; other load on the machine changes them less than times of a clock.
`reference_seconds` is benchmarks/reference.py in the same run: values of two machines compare as ratios to it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dump_batch
import pandas as pd
import reference
import serve_latency

OUT = Path("results/performance/serving.csv")
COLUMNS = ("measure", "before", "now", "goal", "unit", "reference_seconds")
GOALS = {
    "perfcast --help": (0.2, "s CPU"),
    "predict: one machine, cold": (1.5, "s CPU"),
    "predict: 1,000 machines by CPU and chips": (3.0, "s CPU"),
    "predict: 1,000 machines as published": (3.0, "s CPU"),
    "predict: all 41,000 machines as published": (60.0, "s CPU"),
    "serve: new machine, p50": (150.0, "ms"),
    "serve: new machine, p99": (400.0, "ms"),
    "serve: new machine, processor time": (6.0, "ms CPU"),
    "serve: new machine and its neighbors, processor time": (None, "ms CPU"),
    "serve: new machine, explained, processor time": (None, "ms CPU"),
    "serve: 1,000 machines in one request": (3.0, "s"),
    "predictor: rows per second of two free cores": (20_000.0, "1/s"),
}
"""Measure -> goal and unit, on two cores. Processor time of a request: two cores x 60 ms / 20 clients."""
_NEW = (
    ("serve: new machine", "plain"),
    ("serve: new machine and its neighbors", "with neighbors"),
    ("serve: new machine, explained", "explained"),
)


class Code:
    """A checkout whose package is measured."""

    def __init__(self, folder: Path, results: Path) -> None:
        self.results = results
        self.environment = {**os.environ, "PYTHONPATH": str(folder.resolve() / "src"), "OMP_NUM_THREADS": "1"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "perfcast", *words]

    def cpu_seconds(self, command: list[str]) -> float:
        """Return the processor time of a command; batches with refused machines exit with 3."""
        before = os.times()
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-300:]}")
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    @contextmanager
    def serve(self) -> Iterator[tuple[str, int]]:
        """Run the server. Yields: its address and its process id."""
        command = self.command("serve", "--port", "0", "--max-batch", "1000", "--results", str(self.results))
        server = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield server.stdout.readline().rpartition("//")[2].strip(), server.pid
        finally:
            server.terminate()
            server.wait()


def write_machines(results: Path, folder: Path) -> dict[str, Path]:
    """Write descriptions of the published machines. Returns: file by measure; none without the dump."""
    dump_file = results / "raw" / "spec_cpu2017" / "cpu2017-results.csv.gz"
    if not dump_file.is_file():
        return {}
    dump = pd.read_csv(dump_file, dtype=str, keep_default_na=False)
    dump.columns = dump.columns.str.strip()
    machines = dump_batch.describe(dump)
    tables = {
        "predict: 1,000 machines by CPU and chips": machines[["processor", "chips"]].drop_duplicates().head(1000),
        "predict: 1,000 machines as published": machines.sample(1000, random_state=0),
        "predict: all 41,000 machines as published": machines,
    }
    for number, table in enumerate(tables.values()):
        table.to_csv(folder / f"machines_{number}.csv", index=False)
    return {measure: folder / f"machines_{number}.csv" for number, measure in enumerate(tables)}


def measure_commands(code: Code, files: dict[str, Path], repeats: int) -> Iterator[tuple[str, float]]:
    """Yield the processor time of commands, the least of several starts of the short ones."""
    champion = ("--results", str(code.results))
    machine = code.command("predict", "--processor", "EPYC 9654", "--chips", "2", "--brief", *champion)
    for name, command in (("perfcast --help", code.command("--help")), ("predict: one machine, cold", machine)):
        yield name, min(code.cpu_seconds(command) for _ in range(repeats))
    for name, path in files.items():
        yield name, code.cpu_seconds(code.command("predict", str(path), "--out", str(path) + ".out.csv", *champion))


def measure_server(code: Code, clients: int, seconds: float) -> Iterator[tuple[str, float]]:
    """Yield times per request of the server."""
    with code.serve() as (address, process):
        names = serve_latency.list_cpu_names(address)
        for measure, query in _NEW:
            machines = serve_latency.Machines(names)
            send = serve_latency.QUERIES[query], machines
            serve_latency.measure(address, *send, clients=clients, seconds=seconds / 4)
            start = _process_seconds(process)
            latency = serve_latency.measure(address, *send, clients=clients, seconds=seconds)
            if query == "plain":
                yield f"{measure}, p50", latency.quantile(0.5)
                yield f"{measure}, p99", latency.quantile(0.99)
            yield f"{measure}, processor time", 1000 * (_process_seconds(process) - start) / len(latency.times)
        bodies = [json.loads(machines.take()) for _ in range(1000)]
        start = time.perf_counter()
        serve_latency.post(address, f"/predict{serve_latency.QUERIES['plain']}", json.dumps(bodies).encode())
        yield "serve: 1,000 machines in one request", time.perf_counter() - start


def _process_seconds(process: int) -> float:
    """Return user and system seconds of a process and its children (Linux)."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(
        map(_process_seconds, map(int, children))
    )


def measure_predictor(code: Code) -> Iterator[tuple[str, float]]:
    """Yield the rows per second of the champion of SPEC CPU 2017."""
    model, table = (code.results / name for name in ("champion/spec_cpu2017/model", "features/spec_cpu2017.parquet"))
    if table.is_file():
        words = [sys.executable, "benchmarks/prediction_throughput.py", str(model), str(table), "--processes", "2"]
        done = subprocess.run(words, env=code.environment, capture_output=True, text=True, check=True)
        speed = re.search(r"rows per CPU-second +([\d,]+)", done.stdout)
        assert speed is not None
        yield "predictor: rows per second of two free cores", 2 * float(speed[1].replace(",", ""))


def read_values(column: str) -> dict[str, float]:
    """Return the values that were written last."""
    if not OUT.is_file():
        return {}
    with OUT.open(encoding="utf-8", newline="") as file:
        return {row["measure"]: float(row[column]) for row in csv.DictReader(file) if row[column]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of a finished run")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="checkout of an earlier commit")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0, help="of every measurement of the server")
    parser.add_argument("--repeats", type=int, default=3, help="starts of a command, of which the fastest counts")
    parser.add_argument("--only", choices=("server", "predictor", "commands"), help="leave the other values")
    options = parser.parse_args()
    values = {name: read_values(name) for name in ("before", "now")}
    folders = {"now": Path(__file__).parent.parent, **({"before": options.before} if options.before else {})}
    codes = {name: Code(folder, options.results.resolve()) for name, folder in folders.items()}
    reference_seconds = reference.measure(options.repeats)
    print(f"reference computation: {reference_seconds:.2f} s")
    with tempfile.TemporaryDirectory() as temporary:
        files = write_machines(options.results, Path(temporary))
        for name, code in codes.items():
            kinds = {
                "server": measure_server(code, options.clients, options.seconds),
                "predictor": measure_predictor(code),
                "commands": measure_commands(code, files, options.repeats),
            }
            for kind in (options.only,) if options.only else kinds:
                for measure, value in kinds[kind]:
                    values[name][measure] = value
                    print(f"{name:6s} {measure:55s} {value:10.2f} {GOALS[measure][1]}", flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for measure, (goal, unit) in GOALS.items():
            shown = (values[name].get(measure) for name in ("before", "now"))
            cells = ("" if value is None else f"{value:.4g}" for value in (*shown, goal))
            writer.writerow([measure, *cells, unit, f"{reference_seconds:.3g}"])
    print(f"wrote {OUT}")


if __name__ == "__main__":
    main()
