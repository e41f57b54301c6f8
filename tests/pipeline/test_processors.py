"""The metrics of a training are the same on every processor: libraries round otherwise, optimizers end elsewhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from champion_project import FEATURES, SUITES, project
from small_project import call, environment, small_project
from trained_metrics import SPLIT

from perfcast import splits
from perfcast.domains.servers.datasets.spec_cpu.cpu2026 import build
from perfcast.domains.servers.testing import spec_cpu2026
from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import build_features
from perfcast.schema.table_files import write_table
from perfcast.utils.portable_digits import ONE_THREAD, portable_instructions

# one of each kind: in closed form, by search, trees on a residual
PREDICTORS = ["power_law", "ridge", "ratio_model", "ratio_mean", "gaussian_process", "hybrid_trees"]
PROCESSORS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2"},
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge", "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512", "MKL_CBWR": "AVX512"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "AUTO"},
}
"""Variables that make this processor compute as others do."""
CPUINFO = Path("/proc/cpuinfo")
FLAGS = set(CPUINFO.read_text(encoding="utf-8").split()) if CPUINFO.is_file() else set()


def write_inputs(folder: Path) -> None:
    """Write the generated SPEC CPU2026, with estimates by the champion of the generated SPEC CPU2017."""
    raw = {"spec_cpu2026": folder / "raw"}
    spec_cpu2026.write(raw["spec_cpu2026"], rows=200, seed=5)
    standard = build(raw, {}).table
    table = build_features("spec_cpu2026", standard.frame, standard.columns, FEATURES)
    tasks = {suite.replace("2017", "2026"): suite for suite in SUITES}
    write_table(Bridge(project().champion, "cpu2017", tasks).add_estimates(table), folder / "table.parquet")
    folds = splits.make(SPLIT, standard, 0, "2026-06")
    splits.write_folds(folder / "split.parquet", folds, standard, None, splits.split_version(SPLIT))


@pytest.mark.skipif("avx2" not in FLAGS, reason="this processor has no AVX2, so no others to compare with")
def test_metrics_are_those_of_every_other_processor(tmp_path):
    write_inputs(tmp_path)
    names = [name for name in PROCESSORS if name != ("Nehalem" if "avx512dq" in FLAGS else "SkylakeX")]
    command = [sys.executable, str(Path(__file__).parents[1] / "support" / "trained_metrics.py"), str(tmp_path)]
    started = [
        subprocess.Popen(
            [*command, str(tmp_path / f"{name}.json"), *PREDICTORS],
            env={**os.environ, **ONE_THREAD, **PROCESSORS[name]},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors[-3000:]
    first, *others = [json.loads((tmp_path / f"{name}.json").read_text()) for name in names]
    assert set(first["metrics"]) >= set(PREDICTORS)
    for other in others:
        assert other["kernels"] != first["kernels"]
        for predictor, metrics in first["metrics"].items():
            assert other["metrics"][predictor] == metrics, (other["kernels"], predictor)


def test_a_training_by_hand_gives_the_bytes_of_the_graph(tmp_path):
    """The command chooses instructions and threads itself: nothing is set here, as in the shell of a user."""
    made = small_project(tmp_path / "project")
    run = made / "results" / "runs" / "host_gemm" / "random" / "ridge"
    call(made, "snakemake", f"{run.relative_to(made)}/predictions.parquet")
    chosen = {*ONE_THREAD, *portable_instructions()}
    variables = {name: value for name, value in environment(made, cold=True).items() if name not in chosen}
    values = ["dataset=host_gemm", "split=random", "predictor=ridge", "preset=quick", f"out={tmp_path / 'run'}"]
    command = [sys.executable, "-m", "perfcast", "pipeline", "train", *values]
    subprocess.run(command, check=True, cwd=made, env=variables, capture_output=True)
    for name in ("predictions.parquet", "backtest.parquet", "model/linear.json"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes(), name
