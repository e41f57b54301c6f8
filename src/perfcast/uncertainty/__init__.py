"""Uncertainty of predictions: in-domain score, conformal intervals and the correlation of errors.

A backtest is a prediction made inside the training part, for the same kind of split (`backtest.py`). `in_domain.py`
measures the distance of each of its rows from the rows fitted on, `conformal.py` the errors at such distances. None of
these modules knows a predictor: they read residuals and tables.
"""
