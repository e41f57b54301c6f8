"""Generated inputs of coffee."""
