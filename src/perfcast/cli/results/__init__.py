"""Commands on results folders."""
