"""Measurements of this machine: one module per dataset."""
