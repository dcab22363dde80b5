"""Decides on requests: by an override, or by the rules of the origin, for all forms of the URL."""
