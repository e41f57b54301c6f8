"""Stages of the pipeline: one module per stage, called by the rules of Snakemake."""
