"""Helpers for Scrapy's internals, time, threads and text."""
