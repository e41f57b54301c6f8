"""Columns to matrices and tokens, with statistics of the training rows alone."""
