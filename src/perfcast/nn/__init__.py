"""Torch modules: embeddings, networks and the selective scan; no pandas."""

from __future__ import annotations

import sys


def _import_number_embeddings() -> None:
    """Import `rtdl_num_embeddings` without scikit-learn, which it imports, if it can, for bins that are not used here.

    That would add more than a second of processor time to every training of a network.
    """
    absent = "sklearn" not in sys.modules
    if absent:
        sys.modules["sklearn"] = None  # type: ignore[assignment]  # an import of it then fails, as if not installed
    try:
        import rtdl_num_embeddings  # noqa: F401
    finally:
        if absent:
            del sys.modules["sklearn"]


_import_number_embeddings()
