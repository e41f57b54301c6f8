"""Commands on facts of processors."""
