"""Negative control of the leakage checks: a predictor trained on shuffled scores, as conf/audit configures it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from perfcast.config import known, read_yaml, validated
from perfcast.errors import unknown_name


class AuditConf(BaseModel):
    """conf/audit/default.yaml: the predictor that is trained on shuffled scores, and how often."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    control: str
    shuffles: int = Field(ge=1, le=100)


def read_audit(conf: Path) -> AuditConf:
    """Read and check conf/audit/default.yaml. Raises: UserError for a wrong key or type, or an unknown predictor."""
    where = "conf/audit/default.yaml"
    chosen = validated(AuditConf, where, read_yaml(Path(conf) / "audit" / "default.yaml"))
    if chosen.control not in known(conf, "predictor"):
        raise unknown_name(f"control in {where}", chosen.control, known(conf, "predictor"))
    return chosen
