"""Give the protocol to tools outside, and score their predictions."""
