"""HTTP server for predictions: a JSON API and a web page."""

from perfcast.serving.app import create_app
from perfcast.serving.request_limits import RequestLimits

__all__ = ["RequestLimits", "create_app"]
