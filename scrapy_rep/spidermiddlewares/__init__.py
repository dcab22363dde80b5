"""Spider middlewares that obey robots meta tags, ``X-Robots-Tag`` and usage preferences."""
