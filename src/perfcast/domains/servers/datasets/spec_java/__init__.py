"""Published SPECpower_ssj2008 and SPECjbb2015 results."""
