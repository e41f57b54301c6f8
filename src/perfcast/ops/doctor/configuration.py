"""Check of params.yaml and conf/."""

from __future__ import annotations

from perfcast.config.conf_files import read_yaml
from perfcast.config.experiment_params import validate
from perfcast.ops.doctor.findings import BROKEN, FINE, Finding, ProjectPlace
from perfcast.utils.errors import UserError


def check(place: ProjectPlace) -> list[Finding]:
    """Check the experiment as every run does."""
    try:
        params = validate(read_yaml(place.project / "params.yaml"), place.project / "conf")
    except UserError as error:
        return [Finding("configuration", BROKEN, str(error), "edit params.yaml or the conf")]
    fact = f"{len(params.datasets)} datasets, {len(params.predictors)} predictors, preset {params.preset}"
    return [Finding("configuration", FINE, fact)]
