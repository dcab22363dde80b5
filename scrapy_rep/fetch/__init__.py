"""Fetches robots.txt. After an error the outcome is ``Unreachable``; the error is not raised."""
