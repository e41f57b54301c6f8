"""Generated requests of users on the champion of generated results, as Hypothesis strategies."""

from __future__ import annotations

from champion_project import project
from hypothesis import strategies as st

MEMORY = ["12 x 32 GB DDR4-2933", "16 x 32 GB DDR5-4800", "8 x 16 GB DDR4-2666", "24 x 64 GB DDR5-4800"]
_FURTHER = {
    "memory": MEMORY,
    "memory.total": [128, 256, 512, 768],
    "mem_running_mts": [2400, 2933, 4800],
    "turbo": [2600, 3500, 4100],
    "compiler": ["AOCC 4.0", "GCC 12.1"],
    "os": ["SLES 15 SP4", "Ubuntu 22.04"],
}


def _named() -> st.SearchStrategy[dict[str, object]]:
    data = project().champion.reference_data
    measured = sorted(data.measured.frame["cpu_model"].dropna().astype(str).unique())
    names = st.sampled_from(measured) | st.sampled_from(sorted(map(str, data.entity_facts.index)))
    return names.map(lambda name: {"processor": name})


def _unnamed() -> st.SearchStrategy[dict[str, object]]:
    designs = project().champion.designs
    return st.fixed_dictionaries(
        {
            "family": st.sampled_from(designs),
            "cores": st.sampled_from([8, 16, 32, 96]),
            "clock": st.sampled_from([2000, 2500, 3000]),
        }
    )


def requests() -> st.SearchStrategy[dict[str, object]]:
    """Return machines without their number of processors, of a CPU model or a new one, with some further fields."""
    further = st.fixed_dictionaries({}, optional={name: st.sampled_from(listed) for name, listed in _FURTHER.items()})
    machine = _named() | _unnamed()
    return st.tuples(machine, further).map(lambda pair: {**pair[0], **pair[1]})
