"""Published SPEC CPU2017 and CPU2026 results."""
