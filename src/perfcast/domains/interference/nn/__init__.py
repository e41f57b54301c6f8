"""Torch modules of networks over seconds."""
