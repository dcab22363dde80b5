"""Functions and classes for Scrapy's internals, time, threads and text."""
