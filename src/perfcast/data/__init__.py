"""Raw data to tables: sources, datasets, parsers and processor facts."""
