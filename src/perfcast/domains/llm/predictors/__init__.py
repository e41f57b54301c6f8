"""Predictors of GPU operators and of the models that they make up."""
