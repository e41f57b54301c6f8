"""The public sample of PerfCastDB."""
