"""Raw data to tables: strict CSV, quarantine, quality, steps of measured tables."""
