"""Growth of time and memory of every stage with the table: 1, 10 and 100 times SPEC CPU 2017.

Run: python benchmarks/scale [--sizes 1 10 100] [--stages ...] [--folder F] [--out results/scale]
The dump is generated (41,000 results at size 1, every block of as many with machines, months and identifiers of its
own), then every stage runs as a process of its own, one at a time, as the pipeline starts it. Measured are its CPU
seconds and its largest resident memory; the exponent is the slope of log seconds over log rows between two sizes: 1 is
linear growth, 0 none. A stage above --max-gib is stopped and counts as failed. Writes scale.csv and scale.png.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from drawing import draw

ROWS = 41_000
SPLITS = (
    "shuffled", "random", "unseen_cpu", "forward_2023", "few_shot_3",
    "random_20_percent", "unseen_cpu_20_percent", "forward_2023_last_2_years",
)  # fmt: skip
LARGEST = {
    "fit hybrid_trees": 10,
    "predict hybrid_trees": 10,
    "fit hybrid_ensemble": 1,
    "champion": 10,
    "predict_machine": 10,
}
"""Largest size at which a stage runs unless --stages names it: training time grows with the rows."""

BUDGET_GIB = {100: 8.0}
NEEDED = ("generate", "ingest", "standardize", "features")
"""Stages whose files the later ones read."""

FASTER = 1.15
"""Exponent above which growth is reported as faster than linear; smaller excesses are noise."""

DATA_STAGES = ("standardize", "features", "split")


@dataclass(frozen=True)
class Measured:
    """One stage at one size, or a part of one (with no memory of its own). Units: CPU and wall seconds, GiB."""

    size: float
    rows: int
    stage: str
    part: str
    cpu: float
    wall: float
    gib: float
    failed: str = ""


def commands(folder: Path, rows: int) -> dict[str, list[str]]:
    """Return the command of every stage, in the order in which they need each other's files."""
    perfcast, step = [sys.executable, "-m", "perfcast"], [sys.executable, str(Path(__file__).with_name("steps.py"))]
    project = ["--project", str(folder / "project")]
    standard, features = str(folder / "standard.parquet"), str(folder / "features.parquet")
    sizes = {
        "generate": [*step, "generate", str(folder), str(rows)],
        "ingest": [
            *perfcast, "pipeline",
            "ingest", "spec_cpu2017", "--out", str(folder / "raw" / "spec_cpu2017"), "--strict", "--offline",
            "--mirror", str((folder / "mirror").resolve()), *project,
        ],
        "standardize": [
            *perfcast, "pipeline",
            "standardize", "spec_cpu2017", "--raw", str(folder / "raw"), "--table", standard, "--rejected",
            str(folder / "rejected.csv"), "--quality", str(folder / "quality.json"),
            *project,
        ],
        "features": [
            *perfcast, "pipeline",
            "features", "spec_cpu2017", "--table", standard, "--out", features, *project,
        ],
    }  # fmt: skip
    for name in SPLITS:
        out = str(folder / "splits" / f"{name}.parquet")
        sizes[f"split {name}"] = [*perfcast, "pipeline", "split", name, "--table", standard, "--out", out]
    sizes["train ncpp"] = [*step, "train", str(folder)]
    for name in ("hybrid_trees", "hybrid_ensemble"):
        sizes[f"fit {name}"] = [*step, "fit", str(folder), name]
    sizes["predict hybrid_trees"] = [*step, "predict", str(folder), "hybrid_trees"]
    sizes["champion"] = [*step, "champion", str(folder), "analytical"]
    sizes["predict_machine"] = [*step, "predict_machine", str(folder)]
    return sizes


def measure(command: list[str], max_gib: float) -> tuple[str, float, float, float, str]:
    """Run a command; return its output, CPU seconds, wall seconds, peak GiB, and why it failed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, "OMP_NUM_THREADS": "1"})
        why = ""
        while True:
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if not why and resident_gib(child.pid) > max_gib:
                why = f"stopped above {max_gib:g} GiB"
                child.send_signal(signal.SIGKILL)
            time.sleep(0.02)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        output = out.read()
        if child.returncode and not why:
            why = (err.read().strip().splitlines() or [f"exit {child.returncode}"])[-1][:200]
    return output, used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024**2, why


def resident_gib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**3


def run_size(size: float, folder: Path, wanted: list[str] | None, max_gib: float) -> list[Measured]:
    rows = round(ROWS * size)
    results: list[Measured] = []
    folder.mkdir(parents=True, exist_ok=True)
    for stage, command in commands(folder, rows).items():
        if wanted is not None and not any(stage == name or stage.split()[0] == name for name in wanted):
            continue
        if wanted is None and size > LARGEST.get(stage, math.inf):
            continue
        output, cpu, wall, gib, failed = measure(command, max_gib)
        whole = Measured(size, rows, stage, "", cpu, wall, gib, failed)
        parts = json.loads(output.strip().splitlines()[-1]) if not failed and "steps.py" in command[1] else {}
        results += [
            whole,
            *(Measured(size, rows, stage, part, took, math.nan, math.nan) for part, took in parts.items()),
        ]
        print(f"{size:g}x {stage:40s} {cpu:9.2f} s CPU {gib:6.2f} GiB  {failed}", flush=True)
        if failed and stage in NEEDED:
            print(f"the stages after {stage} are left out at {size:g}x", flush=True)
            break
    return results


def exponents(results: list[Measured]) -> dict[tuple[str, str], list[tuple[float, float, float]]]:
    """Return for every stage and part the slopes between neighboring sizes: (smaller, larger, exponent)."""
    slopes: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    by_name: dict[tuple[str, str], list[Measured]] = {}
    for result in results:
        if not result.failed:
            by_name.setdefault((result.stage, result.part), []).append(result)
    for name, measured in by_name.items():
        for small, large in itertools.pairwise(sorted(measured, key=lambda result: result.size)):
            slope = math.log(max(large.cpu, 1e-3) / max(small.cpu, 1e-3)) / math.log(large.rows / small.rows)
            slopes.setdefault(name, []).append((small.size, large.size, slope))
    return slopes


def as_table(results: list[Measured]) -> str:
    sizes = sorted({result.size for result in results})
    slopes = exponents(results)
    head = " ".join(f"{f'{size:g}x':>9s} {'GiB':>6s}" for size in sizes)
    lines = [f"{'stage (CPU seconds)':42s} {head}  exponents"]
    for stage, part in dict.fromkeys((result.stage, result.part) for result in results):
        cells = []
        for size in sizes:
            match = next((m for m in results if (m.size, m.stage, m.part) == (size, stage, part)), None)
            if match is None:
                cells.append(f"{'-':>9s} {'':6s}")
            elif match.failed:
                cells.append(f"{'failed':>9s} {'':6s}")
            else:
                cells.append(f"{match.cpu:9.2f} {'' if math.isnan(match.gib) else f'{match.gib:.2f}':>6s}")
        name = f"  {part}" if part else stage
        exponents_text = ", ".join(f"{slope:.2f}" for _, _, slope in slopes.get((stage, part), []))
        lines.append(f"{name:42s} {' '.join(cells)}  {exponents_text}")
    return "\n".join(lines)


def growth(results: list[Measured]) -> str:
    """Return what grows faster than the rows, in words."""
    fast = [
        f"{' '.join(filter(None, name))} ({small:g}x to {large:g}x: {slope:.2f})"
        for name, slopes in exponents(results).items()
        for small, large, slope in slopes
        if slope > FASTER
    ]
    return f"faster than linear (exponent above {FASTER:g}): {', '.join(fast) or 'nothing'}"


def within_budget(results: list[Measured]) -> str:
    lines = []
    for size, budget in BUDGET_GIB.items():
        stage_results = [
            result
            for result in results
            if result.size == size and not result.part and result.stage.split()[0] in DATA_STAGES
        ]
        if stage_results:
            peak = max(result.gib for result in stage_results)
            failed = [result.stage for result in stage_results if result.failed]
            verdict = f"NO: {', '.join(failed)} failed" if failed else "yes" if peak <= budget else "NO"
            lines.append(
                f"{size}x, standardization, features and splits: peak {peak:.2f} GiB, at most {budget:g}: {verdict}"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 10, 100], help=f"multiples of {ROWS:,} rows")
    parser.add_argument("--stages", nargs="+", help="these only; their inputs must be in --folder already")
    parser.add_argument("--folder", type=Path, help="where the tables are kept (default: a temporary folder)")
    parser.add_argument("--out", type=Path, default=Path("results/scale"), help="folder of scale.csv and scale.png")
    parser.add_argument("--max-gib", type=float, default=10.0, help="memory above which a stage is stopped")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perfcast-scale-") as temporary:
        folder = options.folder or Path(temporary)
        results = [
            result
            for size in sorted(options.sizes)
            for result in run_size(size, folder / f"{size:g}x", options.stages, options.max_gib)
        ]
    print(f"\n{as_table(results)}\nexponent: 1 is linear growth with the rows, 0 is none")
    print("\n".join(filter(None, [growth(results), within_budget(results)])))
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "scale.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(results[0])))
        writer.writeheader()
        writer.writerows(asdict(result) for result in results)
    draw(options.out / "scale.png", [result for result in results if not result.failed and not result.part])
    print(f"wrote {options.out / 'scale.csv'} and {options.out / 'scale.png'}")
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    sys.exit(main())
