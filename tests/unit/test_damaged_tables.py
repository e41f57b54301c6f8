"""A bit that flips in the pages of a table is refused; it is never read as other data."""

import pyarrow.parquet as pq
import pytest
from generated_results import fake_table

from perfcast.schema.table_files import read_parquet, read_table, write_table
from perfcast.utils.errors import UserError


def pages(path):
    """Return the first and the last byte of all pages of a file: the rest is its metadata."""
    groups = pq.read_metadata(path).row_group(0)
    chunks = [groups.column(number) for number in range(groups.num_columns)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    return min(starts), max(ends)


@pytest.mark.reliability("a flipped bit in a Parquet table", cases=150)
@pytest.mark.parametrize("read", [lambda path: read_table(path).frame, read_parquet], ids=["table", "frame"])
def test_no_flipped_bit_is_read_as_other_data(tmp_path, read):
    path = tmp_path / "table.parquet"
    write_table(fake_table(rows=60, seed=0), path)
    whole, sound = path.read_bytes(), read(path)
    first, last = pages(path)
    refused = 0
    for place in range(first, last, max(1, (last - first) // 150)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        try:
            frame = read(path)
        except UserError as error:
            assert str(error).startswith(f"{path} must")
            refused += 1
        else:  # a byte that no reader uses, such as a statistic of a page
            assert frame.equals(sound)
    assert refused > 75
