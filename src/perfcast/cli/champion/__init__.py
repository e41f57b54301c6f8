"""Write a champion as one file, or its answers for every CPU model as a page."""
