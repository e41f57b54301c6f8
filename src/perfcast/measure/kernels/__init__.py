"""The kernels of `perfcast measure suite`, one module each: a new file is a new kernel."""
