"""Obey robots meta tags, ``X-Robots-Tag`` and statements about use."""
