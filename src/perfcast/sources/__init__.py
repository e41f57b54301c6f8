"""Sources: published or embedded files, declared by conf/source/<name>.yaml: addresses, checksums, required columns.

A source whose files are more than CSV tables has a module with a `check`. This package alone uses the network.
"""
