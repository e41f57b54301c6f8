"""Generated results by benchmark, shaped like the detail files of SPEC CPU2017, defects included.

Defects: the `t_` columns are the score again, in seconds; some rows repeat another row's configuration; sizes carry a
decimal point on some rows only; a few rows leave topology or turbo clock empty.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.io import write_text

_BENCHMARKS = {
    "FP_rate": (
        *("503.bwaves_r", "507.cactuBSSN_r", "508.namd_r", "510.parest_r", "511.povray_r", "519.lbm_r", "521.wrf_r"),
        *("526.blender_r", "527.cam4_r", "538.imagick_r", "544.nab_r", "549.fotonik3d_r", "554.roms_r"),
    ),
    "FP_speed": (
        *("603.bwaves_s", "607.cactuBSSN_s", "619.lbm_s", "621.wrf_s", "627.cam4_s", "628.pop2_s", "638.imagick_s"),
        *("644.nab_s", "649.fotonik3d_s", "654.roms_s"),
    ),
    "Int_rate": (
        *("500.perlbench_r", "502.gcc_r", "505.mcf_r", "520.omnetpp_r", "523.xalancbmk_r", "525.x264_r"),
        *("531.deepsjeng_r", "541.leela_r", "548.exchange2_r", "557.xz_r"),
    ),
    "Int_speed": (
        *("600.perlbench_s", "602.gcc_s", "605.mcf_s", "620.omnetpp_s", "623.xalancbmk_s", "625.x264_s"),
        *("631.deepsjeng_s", "641.leela_s", "648.exchange2_s", "657.xz_s"),
    ),
}
_MODELS = ("Xeon Gold 5120", "Xeon Gold 6230", "Xeon Silver 4210", "Xeon Platinum 8280", "EPYC 7452", "EPYC 7742")
_OPTIONAL = ("arch", "cpus", "threads_per_core", "cores_per_socket", "sockets", "numas")
_MISSING_SHARE, _REPEATED_SHARE = 0.02, 0.05


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write input_FP_rate.csv, input_FP_speed.csv, input_Int_rate.csv and input_Int_speed.csv of `rows` rows each."""
    random = np.random.default_rng(seed)
    for suite, benchmarks in _BENCHMARKS.items():
        systems = _systems(suite, rows, random)
        frame = pd.concat([systems, _scores(systems, benchmarks, suite, random)], axis=1)
        missing = random.uniform(size=rows) < _MISSING_SHARE
        for name in _OPTIONAL:
            frame[name] = frame[name].astype("str").mask(missing, "")
        frame["max_mhz"] = frame["max_mhz"].astype("str").mask(random.uniform(size=rows) < _MISSING_SHARE, "")
        write_text(Path(folder) / f"input_{suite}.csv", frame.to_csv(index=False, lineterminator="\n"))


def _systems(suite: str, rows: int, random: np.random.Generator) -> pd.DataFrame:
    model = random.choice(_MODELS, size=rows)
    amd = np.char.startswith(model.astype("str"), "EPYC")
    cores, sockets = random.choice([8, 14, 20, 28], size=rows), random.choice([1, 2, 4], size=rows)
    mhz = random.choice([2100, 2200, 2600, 2700], size=rows)
    threads = 2 if "rate" in suite else 1
    modules, module_kb = 6 * sockets, random.choice([16, 32], size=rows) * 1024**2
    vendor = random.choice(["Generated Systems", "Example Computers Inc."], size=rows)
    days = random.integers(0, 900, size=rows)
    dates = (pd.Timestamp("2017-10-02") + pd.to_timedelta(days, unit="D")).strftime("%Y%m%d")
    frame = pd.DataFrame(
        {
            "vendor": np.where(amd, "AMD", "Intel"),
            "hardware_vendor": vendor,
            "model_name": model,
            "test_sponsor": vendor,
            "nominal_mhz": mhz,
            "max_mhz": mhz + 1200,
            "arch": "x86_64",
            "cpus": cores * sockets * threads,
            "threads_per_core": threads,
            "cores_per_socket": cores,
            "sockets": sockets,
            "numas": sockets,
            "l1d_cache_kb": 32,
            "l1i_cache_kb": np.where(amd, 64, 32),
            "l2_cache_kb": np.where(amd, "512", "1024.0"),
            "l3_cache_kb": cores * 1408.0,
            "mem_kb": (modules * module_kb * 0.982).astype("int64"),
            "mem_channels": modules,
            "channel_kb": module_kb.astype("float64"),
            "mem_data_rate": random.choice([2666, 2933, 3200], size=rows),
            "storage_gb": random.choice([480.0, 960.0], size=rows),
            "os_name": "SLES",
            "os_vid": random.choice(["12.4", "15", "15.1"], size=rows),
            "os": "SUSE Linux Enterprise Server 15 (x86_64)",
            "compiler": np.where(
                amd, "C/C++/Fortran: Version 2.0.0 of AOCC", "C/C++: Version 19.0.4.227 of Intel C/C++"
            ),
            "parallel": "No" if "rate" in suite else "Yes",
            "file_system": random.choice(["xfs", "btrfs"], size=rows),
            "threads_or_copies": cores * sockets * threads,
        }
    )
    repeated = random.uniform(size=rows) < _REPEATED_SHARE
    source = np.where(repeated, random.integers(0, max(rows, 1), size=rows), np.arange(rows))
    frame = frame.iloc[source].reset_index(drop=True)
    return frame.assign(file=[f"cpu2017-{date}-{number:05d}.csv" for number, date in enumerate(dates, start=1)])


def _scores(
    systems: pd.DataFrame, benchmarks: tuple[str, ...], suite: str, random: np.random.Generator
) -> pd.DataFrame:
    """Return a score and its time for every benchmark: score = reference seconds x copies / time."""
    copies = systems["threads_or_copies"] if "rate" in suite else pd.Series(1, index=systems.index)
    clock = systems["nominal_mhz"].astype("float64") / 2500
    gain = clock if "rate" in suite else clock * systems["threads_or_copies"].astype("float64") ** 0.5
    columns: dict[str, pd.Series] = {}
    for name in benchmarks:
        reference = 1000.0 + 10 * int(name[:3])
        seconds: pd.Series = (reference / 5 / gain * np.exp(random.normal(0, 0.02, size=len(systems)))).round(6)
        columns[name] = (reference * copies.astype("float64") / seconds).round(6)
        columns[f"t_{name}"] = seconds
    return pd.DataFrame(columns)
