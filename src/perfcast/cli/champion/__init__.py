"""Write a champion as one file."""
