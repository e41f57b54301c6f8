"""Sources: where bytes come from. The only package that touches the network."""
