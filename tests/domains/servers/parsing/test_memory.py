"""Memory texts: generated ones round-trip, labels of every generation, groups of unlike modules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.servers.parsing.memory import (
    ECC_BY_TYPE,
    JEDEC_MTS,
    convert_label,
    parse_memory,
    snap_to_grade,
)

GRADES = {4: (1600, 1866, 2133, 2400, 2667, 2933, 3200), 5: (4000, 4400, 4800, 5200, 5600, 6400, 8800)}
GROUP = st.tuples(
    st.integers(1, 999),
    st.sampled_from([8, 16, 48, 128]),
    st.sampled_from(["", "1Rx8 ", "2Rx4 ", "4DRx4 ", "2S2Rx4 "]),
    st.sampled_from(["", "A", "BB"]),
    st.sampled_from(sorted(ECC_BY_TYPE)),
)


@settings(max_examples=150, deadline=None)
@given(
    groups=st.lists(GROUP, min_size=1, max_size=3),
    generation=st.sampled_from(sorted(GRADES)),
    separator=st.sampled_from(["; ", ", ", " + "]),
    hbm=st.integers(0, 8),
    data=st.data(),
)
def test_a_generated_text_round_trips(groups, generation, separator, hbm, data):
    rates = [data.draw(st.sampled_from(GRADES[generation])) for _ in groups]
    running = data.draw(st.none() | st.sampled_from(GRADES[generation]))
    parts = [
        f"{count} x {size} GB {ranks}PC{generation}-{rate}{grade}-{letter}"
        for (count, size, ranks, grade, letter), rate in zip(groups, rates, strict=True)
    ]
    parts += [f"{hbm} x 16 GB HBM"] if hbm else []
    total = sum(group[0] * group[1] for group in groups) + 16 * hbm
    memory = parse_memory(f"{total} GB ({separator.join(parts)}{f', running at {running}' if running else ''})")

    main = max(groups, key=lambda group: group[0])
    assert memory.complete
    assert memory.mem_total_gb == memory.mem_sum_gb == total
    assert memory.hbm_gb == 16 * hbm
    assert memory.dimm_count == sum(group[0] for group in groups)
    assert memory.dimm_groups == len(groups)
    assert (memory.dimm_gb, memory.dimm_type, memory.ecc) == (main[1], main[4], ECC_BY_TYPE[main[4]])
    assert memory.dimm_ranks == {"": None, "1Rx8 ": 1, "2Rx4 ": 2, "4DRx4 ": 4, "2S2Rx4 ": 4}[main[2]]
    assert memory.ddr_gen == generation
    assert (memory.mem_rated_mts, memory.mem_running_mts) == (min(rates), running)
    assert memory.mem_eff_mts == (running or min(rates))


@pytest.mark.parametrize(
    ("generation", "number", "mts"),
    [
        (3, 1600, 1600),
        (3, 10600, 1333),
        (3, 12800, 1600),
        (3, 14900, 1866),
        (4, 2666, 2667),
        (4, 2934, 2933),
        (4, 17000, 2133),
        (4, 19200, 2400),
        (4, 21300, 2667),
        (4, 23400, 2933),
        (4, 25600, 3200),
        (5, 5600, 5600),
        (5, 11200, 11200),
        (5, 12800, 12800),
        (5, 38400, 4800),
        (5, 51200, 6400),
    ],
)
def test_the_number_of_a_label_is_a_rate_or_a_bandwidth_by_generation(generation, number, mts):
    assert convert_label(generation, number) == (generation, mts)


@pytest.mark.parametrize(
    ("label", "number", "generation"), [(4, 3200, 4), (4, 4800, 5), (4, 25600, 4), (5, 4800, 5), (1, 3200, None)]
)
def test_a_ddr4_label_cannot_have_a_rate_of_ddr5(label, number, generation):
    assert convert_label(label, number)[0] == generation


@given(st.sampled_from(JEDEC_MTS), st.integers(-2, 2))
def test_rates_near_a_grade_become_the_grade(grade, error):
    assert snap_to_grade(grade + error) == grade
    assert snap_to_grade(grade + 30) == grade + 30
