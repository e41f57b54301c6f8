"""The reader of tables, under the name by which the rules of servers import it."""

from perfcast.domains import read_table

__all__ = ["read_table"]
