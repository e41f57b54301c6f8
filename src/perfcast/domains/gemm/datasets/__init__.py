"""Tables of the datasets."""
