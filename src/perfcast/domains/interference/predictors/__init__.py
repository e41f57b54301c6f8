"""Predictors of interference: shares of resources, and networks over seconds."""
