"""Fetch a champion, write it as one file, or its answers as a page."""
