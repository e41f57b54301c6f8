"""Sources: published or embedded files, declared by conf/source/<name>.yaml with addresses and checksums.

This package alone uses the network.
"""
