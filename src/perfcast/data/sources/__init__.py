"""Sources: published or embedded files, one module per source with a `check` of its structure.

conf/source/<name>.yaml declares the files of a source and names its module. This package alone uses the network.
"""
