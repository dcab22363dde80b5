"""Keeps requests as long as they have to wait, in memory, on disk or in Redis."""
