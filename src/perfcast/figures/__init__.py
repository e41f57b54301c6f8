"""Figures: one module each, a drawing and its caption."""
