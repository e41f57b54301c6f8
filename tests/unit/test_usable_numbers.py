"""Numbers that are infinite or larger than anything measured: refused in tables, rejected in raw rows."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from generated_results import fake_table

from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Column, Kind, Role, outside
from perfcast.schema.table_files import read_table, write_table
from perfcast.utils.errors import UserError


@pytest.mark.reliability("an infinite or absurd number in a table is trained on without a word")
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, -1e300, 1.1e18])
@pytest.mark.parametrize("role", ["feature", "target"])
def test_a_number_that_no_machine_has_is_refused_where_a_table_is_written_and_read(tmp_path, value, role):
    table, path = fake_table(rows=40, seed=0), tmp_path / "table.parquet"
    name = table.select(role=Role(role), kind=Kind.NUMERICAL)[0]
    table.frame.loc[6, name] = value
    with pytest.raises(UserError, match=rf"finite and at most 1e\+18, but {name} is .* in row 7; correct or remove"):
        write_table(table, path)
    assert not path.exists()
    sound = fake_table(rows=40, seed=0)
    write_table(sound, path)
    arrow = pq.read_table(path)
    cells = arrow.column(name).to_pandas().where(lambda column: column.index != 6, value)
    pq.write_table(arrow.set_column(arrow.column_names.index(name), arrow.field(name), [cells]), path)
    with pytest.raises(UserError, match=f"{name} is .* in row 7"):
        read_table(path)


@pytest.mark.reliability("an infinite or absurd number in a table is trained on without a word")
@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_a_column_without_bounds_has_those_of_numbers(value):
    column = Column("cache", Kind.NUMERICAL, Role.FEATURE, "processor")
    marked = outside(pd.Series([1.0, value, -value, np.nan]), column)
    assert marked.tolist() == [False, True, True, False]


@pytest.mark.reliability("an infinite or absurd number in a table is trained on without a word")
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_a_predictor_refuses_to_train_on_such_a_number(value):
    table = fake_table(rows=60, seed=0)
    name = table.select(role=Role.FEATURE, kind=Kind.NUMERICAL)[0]
    table.frame.loc[6, name] = value
    with pytest.raises(UserError, match=f"numbers in the training rows must be finite .* {name} is"):
        Ridge().fit(table.frame, table.frame[table.select(role=Role.TARGET)], columns=table.columns)
