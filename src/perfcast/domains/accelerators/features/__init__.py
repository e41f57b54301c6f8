"""Derived characteristics of accelerators and what they run."""
