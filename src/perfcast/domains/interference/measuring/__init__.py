"""Interference of workloads on one machine: workloads, control groups, metrics, scenarios and the campaign."""
