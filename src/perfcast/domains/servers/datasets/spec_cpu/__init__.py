"""Published SPEC CPU2017 and CPU2006 results."""
