"""A package, as installed ones of this name, which scrapy-impersonate brings, come before a mere folder."""
