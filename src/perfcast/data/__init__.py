"""Data: sources, files from outside, and what is read from them."""
