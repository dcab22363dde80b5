"""Crawls of made-up webs with made-up settings, and what breaks a promise: ``python -m tests.wire.chaos``."""
