"""Obey robots meta tags, ``X-Robots-Tag`` and usage preferences."""
