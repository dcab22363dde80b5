"""Helpers that know nothing of robots.txt: of Scrapy's inside, of time and threads, of text."""
