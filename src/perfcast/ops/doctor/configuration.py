"""params.yaml and conf/: valid before anything is planned."""

from __future__ import annotations

from perfcast.config import read_yaml, validate
from perfcast.errors import UserError
from perfcast.ops.doctor.base import BROKEN, FINE, Finding, Place

ORDER = 20


def look(place: Place) -> list[Finding]:
    """Check the experiment as every run does."""
    try:
        params = validate(read_yaml(place.project / "params.yaml"), place.project / "conf")
    except UserError as error:
        return [Finding("configuration", BROKEN, str(error), "edit params.yaml or the conf")]
    told = f"{len(params.datasets)} data sets, {len(params.predictors)} predictors, schedule {params.schedule}"
    return [Finding("configuration", FINE, told)]
