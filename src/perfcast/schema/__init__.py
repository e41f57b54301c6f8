"""Column declarations and the self-describing table."""
