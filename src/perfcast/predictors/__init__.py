"""Predictors: one module each, all under the contract of `base.Predictor`."""
