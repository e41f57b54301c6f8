"""All rows of the dump of SPEC CPU 2017 as descriptions through `perfcast predict`.

Run: python benchmarks/dump_batch.py RESULTS [--rows 1000] [--seed 0] [--folder FOLDER]
RESULTS is the results folder of a run. A row gives processor, chips, cores, clock, memory, storage, operating
system, compiler, threads per core and suite as published. The command runs as a process of its own.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

COLUMNS = {
    "Processor": "processor",
    "# Chips": "chips",
    "# Cores": "cores_enabled_total",
    "Processor MHz": "clock",
    "# Enabled Threads Per Core": "threads_per_core",
    "Memory": "memory",
    "Storage": "storage",
    "Operating System": "os",
    "Compiler": "compiler",
}
"""Column of the dump -> field of a description."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--rows", type=int, default=0, help="rows drawn (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keep the table of machines and the answers here")
    options = parser.parse_args()
    dump = pd.read_csv(
        options.results / "raw" / "spec_cpu2017" / "cpu2017-results.csv.gz", dtype=str, keep_default_na=False
    )
    dump.columns = dump.columns.str.strip()
    if options.rows:
        dump = dump.sample(options.rows, random_state=options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        describe(dump).to_csv(folder / "machines.csv", index=False)
        out = folder / "answers.csv"
        words = ["predict", str(folder / "machines.csv"), "--results", str(options.results), "--out", str(out)]
        start = time.perf_counter()
        code = subprocess.run([sys.executable, "-m", "perfcast.cli.main", *words], check=False).returncode
        seconds = time.perf_counter() - start
        answers = pd.read_csv(out).drop_duplicates("line")
    answered = int((answers["status"] == "ok").sum())
    print(f"{answered} of {len(dump)} machines answered in {seconds:.1f} s, exit code {code}")
    reasons = answers.loc[answers["status"] != "ok", "message"].map(_generalize).value_counts()
    for reason, count in reasons.items():
        print(f"{count:6} {reason}")


def describe(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the descriptions of the rows; MHz and zeros are written as a data sheet writes them."""
    machines = dump[list(COLUMNS)].rename(columns=COLUMNS)
    # the dump calls speed suites CINT2017 and CFP2017
    suites = (
        dump["Benchmark"]
        .str.replace("_", "")
        .where(dump["Benchmark"].str.contains("rate"), dump["Benchmark"] + "speed")
    )
    return machines.assign(suite=suites, clock=(machines["clock"] + " MHz").where(machines["clock"] != "0", ""))


def _generalize(message: str) -> str:
    """Return a message without its values."""
    return re.sub(r"'[^']*'|\d+(?:\.\d+)?", "#", message.partition(" (line")[0])[:140]


if __name__ == "__main__":
    main()
