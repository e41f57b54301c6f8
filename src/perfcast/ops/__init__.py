"""Operation of a run: checks before it, times of its jobs, and its summary."""
