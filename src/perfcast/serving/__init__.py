"""Forecasts over HTTP: a small API with a web page, bounded in everything that a user can send."""

from perfcast.serving.app import create_app
from perfcast.serving.limits import Limits

__all__ = ["Limits", "create_app"]
