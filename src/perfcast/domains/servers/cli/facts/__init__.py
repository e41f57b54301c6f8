"""Add, list and check dated facts of CPU models."""
