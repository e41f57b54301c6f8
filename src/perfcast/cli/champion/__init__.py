"""Write a champion as one file, for another machine."""
