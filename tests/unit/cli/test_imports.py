"""Heavy libraries that a command imports: after parsing its options, and after importing what it needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from project_root import ROOT  # noqa: I001
