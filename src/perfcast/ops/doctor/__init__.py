"""What a run needs, looked at before it starts: one module per thing, each with `look(place)`."""

from perfcast.ops.doctor.base import BROKEN, CARE, FINE, Finding, Place, examine

__all__ = ["BROKEN", "CARE", "FINE", "Finding", "Place", "examine"]
