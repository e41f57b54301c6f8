"""Write a champion as one file, or its answers as a page."""
