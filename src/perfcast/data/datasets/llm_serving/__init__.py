"""Measured deployments of large language models: latency of the first token and of each further one."""
