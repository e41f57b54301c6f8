"""Published SPECpower_ssj2008 results."""
