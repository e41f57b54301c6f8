"""Composition and validation of params.yaml and conf/."""
