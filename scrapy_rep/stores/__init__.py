"""Stores for the records of origins: memory, SQLite and Redis."""
