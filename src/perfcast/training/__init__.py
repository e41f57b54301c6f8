"""The Lightning module, trainer and in-memory loader that neural predictors share."""
