"""HELP: latencies of neural networks on devices."""
