"""Generators of test inputs."""
