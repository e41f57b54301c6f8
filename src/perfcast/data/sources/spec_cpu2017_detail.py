"""Per-benchmark scores of SPEC CPU 2017 results: four CSV files, one per suite."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv

SYSTEM_COLUMNS = (
    "vendor",
    "hardware_vendor",
    "model_name",
    "nominal_mhz",
    "max_mhz",
    "arch",
    "cpus",
    "threads_per_core",
    "cores_per_socket",
    "sockets",
    "l1d_cache_kb",
    "l1i_cache_kb",
    "l2_cache_kb",
    "l3_cache_kb",
    "mem_kb",
    "mem_channels",
    "mem_data_rate",
    "os_name",
    "compiler",
    "parallel",
    "file_system",
    "threads_or_copies",
    "file",
)

BENCHMARKS = {
    "input_FP_rate.csv": (
        "503.bwaves_r",
        "507.cactuBSSN_r",
        "508.namd_r",
        "510.parest_r",
        "511.povray_r",
        "519.lbm_r",
        "521.wrf_r",
        "526.blender_r",
        "527.cam4_r",
        "538.imagick_r",
        "544.nab_r",
        "549.fotonik3d_r",
        "554.roms_r",
    ),
    "input_FP_speed.csv": (
        "603.bwaves_s",
        "607.cactuBSSN_s",
        "619.lbm_s",
        "621.wrf_s",
        "627.cam4_s",
        "628.pop2_s",
        "638.imagick_s",
        "644.nab_s",
        "649.fotonik3d_s",
        "654.roms_s",
    ),
    "input_Int_rate.csv": (
        "500.perlbench_r",
        "502.gcc_r",
        "505.mcf_r",
        "520.omnetpp_r",
        "523.xalancbmk_r",
        "525.x264_r",
        "531.deepsjeng_r",
        "541.leela_r",
        "548.exchange2_r",
        "557.xz_r",
    ),
    "input_Int_speed.csv": (
        "600.perlbench_s",
        "602.gcc_s",
        "605.mcf_s",
        "620.omnetpp_s",
        "623.xalancbmk_s",
        "625.x264_s",
        "631.deepsjeng_s",
        "641.leela_s",
        "648.exchange2_s",
        "657.xz_s",
    ),
}
"""File -> score columns. The `t_` columns of the file, not listed here, are the same scores in seconds."""


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    for name, benchmarks in BENCHMARKS.items():
        check_csv(folder / name, (*SYSTEM_COLUMNS, *benchmarks))
