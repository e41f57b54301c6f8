"""Ratios to the metrics alone, by hand."""

import numpy as np
import pandas as pd

from perfcast.domains.interference.features.alone_ratios import ALONE, OF_ALONE, USE, WORK, derive
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

RUN, READS, WRITES = "group.processes.run_seconds", "group.processes.syscr", "group.processes.syscw"


def make(now, alone):
    """Return a table of windows of two seconds that end with `now`, and the means alone."""
    count = len(next(iter(now.values())))
    frame = {"id": [f"row {number}" for number in range(count)]}
    columns = [Column("id", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.ROW,))]
    for name, values in now.items():
        frame[name] = from_matrix(np.column_stack([np.zeros(count), values]).astype("float32"))
        columns.append(Column(name, Kind.SEQUENCE, Role.FEATURE, "victim"))
    for name, values in alone.items():
        frame[ALONE + name] = values
        columns.append(Column(ALONE + name, Kind.NUMERICAL, Role.FEATURE, "alone"))
    return build_table("tenants", pd.DataFrame(frame), tuple(columns))


def test_use_is_the_processor_time_now_over_that_alone():
    derived = derive(make({RUN: [0.2, 0.9, 0.5, 0.3]}, {RUN: [0.8, 0.6, 0.0, np.nan]})).frame
    np.testing.assert_allclose(derived[RUN + OF_ALONE], [0.25, 1.5, np.nan, np.nan], rtol=1e-6)
    np.testing.assert_allclose(derived[USE], [0.25, 1.0, np.nan, np.nan], rtol=1e-6)
    np.testing.assert_allclose(derived[WORK], derived[USE])


def test_work_is_told_by_calls_where_there_are_enough():
    now = {RUN: [0.5, 0.5, 0.5], READS: [30.0, 10.0, 900.0], WRITES: [20.0, 0.0, 0.0]}
    alone = {RUN: [1.0, 1.0, 1.0], READS: [100.0, 49.0, 600.0], WRITES: [100.0, 0.0, 0.0]}
    derived = derive(make(now, alone)).frame
    np.testing.assert_allclose(derived[WORK], [0.25, 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(derived[USE], 0.5, rtol=1e-6)


def test_a_ratio_to_almost_nothing_ends_at_ten():
    derived = derive(make({RUN: [0.5], READS: [40.0]}, {RUN: [0.5], READS: [0.01]})).frame
    assert derived[READS + OF_ALONE].iloc[0] == 10


def test_a_metric_that_the_machine_lacks_has_no_ratio():
    table = make({RUN: [0.5]}, {READS: [3.0]})
    assert derive(table).columns == table.columns
