"""Predictors of new tasks from a few measured rows."""
