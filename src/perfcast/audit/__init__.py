"""What must hold before any error is believed, looked at anew in the files that the stages wrote.

Every public module of this package but `base` is one check: `MEANING` (one sentence), `REMEDY` (what to do about a
finding) and `look(evidence) -> Looked`. To add a check, add a module.
"""

from perfcast.audit._run import audit, complaints
from perfcast.audit.base import Control, Evidence, Looked, Run

__all__ = ["Control", "Evidence", "Looked", "Run", "audit", "complaints"]
