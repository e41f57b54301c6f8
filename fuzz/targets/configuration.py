"""params.yaml and the files of conf/: any text gives a valid experiment or one line."""

from __future__ import annotations

from pathlib import Path

from _refusing import refusing, written

from perfcast.config.conf_files import read_yaml, validated
from perfcast.config.dataset_conf import DatasetConf
from perfcast.config.experiment_params import Params
from perfcast.config.predictor_conf import PredictorConf
from perfcast.sources.source_spec import parse_source

CONF = Path(__file__).parents[2] / "conf"
SEEDS = [
    b"\x00" + (CONF.parent / "params.yaml").read_bytes(),
    b"\x01" + (CONF / "dataset" / "spec_cpu2017_detail.yaml").read_bytes(),
    b"\x02" + (CONF / "predictor" / "lasso.yaml").read_bytes(),
    b"\x03" + (CONF / "source" / "spec_cpu2017.yaml").read_bytes(),
    b"\x00a: &a [1]\nb: [*a, 2020-13-45, !!binary x, 0o7, 1_0]\n",
]


def check(data: bytes) -> None:
    """Read one file."""
    if not data:
        return
    which = data[0] % 4
    with refusing():
        value = read_yaml(written("file.yaml", data[1:]))
        if which == 0:
            validated(Params, "params.yaml", value)
        elif which == 1:
            validated(DatasetConf, "conf/dataset/x.yaml", value)
        elif which == 2:
            validated(PredictorConf, "conf/predictor/x.yaml", value)
        else:
            parse_source("x", value)
