"""Run one stage of the pipeline, as the rules of Snakemake do."""
