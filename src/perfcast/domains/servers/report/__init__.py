"""What the report shows of servers."""
