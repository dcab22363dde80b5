"""Stores of records (how the last fetches of robots.txt ended): in memory, SQLite and Redis."""
