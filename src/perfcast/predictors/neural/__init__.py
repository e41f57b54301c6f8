"""Neural predictors: one estimator class per network."""
