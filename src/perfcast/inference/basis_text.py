"""Basis of an answer as lines for a terminal."""

from __future__ import annotations

from perfcast.inference.basis import MEASURED_FACTOR, Basis
from perfcast.utils.terminal_tables import NO_BREAK


def format_basis(basis: Basis | None) -> list[str]:
    """Return lines on data, errors, facts, and on how to check the answer."""
    if basis is None:
        return []
    until = f" up to {basis.trained_until}" if basis.trained_until else ""
    lines = [f"basis: {basis.measured_results} measured results{until}"]
    if basis.errors:
        shown = [f"{each.task} {100 * each.median:.1f} % ({100 * each.p90:.0f} %)" for each in basis.errors]
        errors = "errors in backtests at this distance, half (nine tenths) are smaller"
        lines.append(_keep_units(f"{errors}: {', '.join(shown)}"))
    for source in basis.facts:
        facts = ", ".join(fact.replace(" ", NO_BREAK) for fact in source.facts)
        public = f"public from {source.known_from}" if source.known_from else "undated"
        lines.append(f"facts of {source.subject}, {public} ({source.source}): {facts}")
    lines += [f"to check {each.task}: {each.command}" for each in basis.checks]
    if basis.moves:
        moves = [
            f"{each.task} by {100 * (each.factor - 1):+.1f} % ({100 * each.width:.0f} % of its width remain)"
            for each in basis.moves
        ]
        result = (
            f"one result of {basis.measured_task} {100 * (MEASURED_FACTOR - 1):.0f} % above its estimate (--measured)"
        )
        lines.append(_keep_units(f"{result} would move {', '.join(moves)}"))
    return lines


def _keep_units(text: str) -> str:
    return text.replace(" %", f"{NO_BREAK}%")
