"""Domains: kinds of measured things, each with its data, splits, features, predictors and commands."""
