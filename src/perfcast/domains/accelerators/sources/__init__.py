"""Sources: the structure of their files."""
