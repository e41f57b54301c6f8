"""Hybrid (gray-box) predictors: an analytical model plus learners of its residual."""
