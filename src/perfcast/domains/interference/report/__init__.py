"""What the report shows of interference."""
