"""Imputation of partly described machines: rules by dataset, and hot-deck imputation from measured results."""
