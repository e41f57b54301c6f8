"""The protocol's metrics, computed from predictions alone."""
