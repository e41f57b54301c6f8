"""Torch modules: embeddings, networks and the selective scan; no pandas."""
